"""vLLM in the processes that train: one engine a rank, or one spread over neighbouring ranks.

Weights go from the trainer's stream into the engine tensor by tensor, on every rank at the same time; there is no copy
between. While the trainer computes, the engine sleeps: it gives its GPU memory back and forgets its weights, which the
next update brings again in any case. Evaluation and further rollouts with the same weights bring nothing.

Place in the flow: requests → **colocated** → vLLM's engine → groups.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from grpo_core.api import PluginError, RolloutError, RolloutGroup, RolloutRequest
from grpo_core.backends import BackendContext
from grpo_core.model.family import reads_images
from grpo_core.model.load import context_length, model_config
from grpo_core.model.tokenizer import end_token_ids, load_tokenizer
from grpo_core.rollout.requests import check_requests
from grpo_core.rollout.stop import CompletionText
from grpo_rollout_vllm.answers import completion_of, require_room, sampling_of
from grpo_rollout_vllm.images import PromptImages, processor_arguments, require_same_prompt
from grpo_rollout_vllm.launch import CPU_ENVIRONMENT, EXTENSION, INSTALL_HINT
from grpo_rollout_vllm.options import VllmRolloutOptions
from grpo_rollout_vllm.replica import Replica
from grpo_rollout_vllm.spool import in_precision

__all__ = ["ColocatedRollout"]

_DTYPES = {"fp32": "float32", "bf16": "bfloat16"}
_KEPT: list[Any] = []


class ColocatedRollout:
    """Implements `RolloutBackend` and `RestsBetweenRollouts`."""

    def __init__(self, options: VllmRolloutOptions, context: BackendContext) -> None:
        """Start the engine, without weights; called by all ranks together."""
        self._context = context
        self._on_gpu = torch.cuda.is_available()
        self._sleeps = options.sleep and self._on_gpu
        self._asleep = False
        self._version: int | None = None
        tokenizer = load_tokenizer(context.model)
        self._vocab_size = int(model_config(context.model).get_text_config().vocab_size)
        self._context_tokens, self._own_limit = context_length(context.model), options.context_tokens
        self._end_ids = sorted(end_token_ids(tokenizer, context.model))
        self._text = CompletionText(tokenizer, self._end_ids)
        self._images = PromptImages(context.model)
        self._replica = Replica(context, options.tensor_parallel)
        self._llm: Any = _start(options, context, sleeps=self._sleeps)
        self._asked = 0

    def load_weights(self, stream: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Take over the trainer's weights as they are streamed, on every rank."""
        if self._asleep:
            self._llm.wake_up(tags=["weights"])
        self._llm.collective_rpc("grpo_take", args=(in_precision(stream, self._context.trainer.precision),))
        if self._asleep:
            self._llm.wake_up(tags=["kv_cache"])
            self._asleep = False
        if not self._llm.reset_prefix_cache():
            raise RolloutError("vLLM could not forget what it computed with the old weights")
        self._llm.llm_engine.reset_encoder_cache()
        self._version = version

    def generate(self, requests: Sequence[RolloutRequest]) -> Iterator[RolloutGroup]:
        """Yield each group once all its completions are there; called by all ranks together."""
        if self._version is None:
            raise RolloutError("there are no weights yet", hint="call load_weights before generate")
        check_requests(
            requests,
            vocab_size=self._vocab_size,
            context_tokens=self._context_tokens,
            reads_images=self._images.are_read,
        )
        if self._own_limit is not None:
            require_room(
                requests,
                self._own_limit,
                "of rollout.options.context_tokens",
                hint="raise it, or lower rollout.max_completion_tokens or dataset.max_prompt_tokens",
            )
        return self._groups(self._replica.together(requests), self._version)

    def rest(self) -> None:
        """Make room on the GPU; the next thing must be `load_weights`."""
        self._version = None
        if self._sleeps and not self._asleep:
            self._llm.sleep(level=2)
            self._asleep = True

    def close(self) -> None:
        """Let the engine go."""
        if self._context.world_size > 1:
            _keep(self._llm)
        self._llm = None

    def _groups(self, requests: Sequence[tuple[RolloutRequest, bool]], version: int) -> Iterator[RolloutGroup]:
        from vllm import SamplingParams

        engine, waiting = self._llm.llm_engine, dict[str, tuple[RolloutRequest, bool]]()
        for request, is_mine in requests:
            self._asked += 1
            waiting[str(self._asked)] = request, is_mine
            sampling = sampling_of(request, self._end_ids, self._images)
            params = SamplingParams(**sampling, output_kind=_final_only())
            engine.add_request(str(self._asked), self._images.prompt(request), params)
        while waiting:
            for output in engine.step():
                if output.finished:
                    request, is_mine = waiting.pop(output.request_id)
                    if is_mine:
                        yield self._group(request, output, version)

    def _group(self, request: RolloutRequest, output: Any, version: int) -> RolloutGroup:
        require_same_prompt(request, output.prompt_token_ids, "vLLM")
        completions = tuple(
            completion_of(
                request,
                tokens=tuple(each.token_ids),
                logprobs=tuple(
                    float(place[token].logprob) for place, token in zip(each.logprobs, each.token_ids, strict=True)
                ),
                finish_reason=each.finish_reason,
                version=version,
                text=self._text,
            )
            for each in sorted(output.outputs, key=lambda each: int(each.index))
        )
        return RolloutGroup(request=request, completions=completions, logprob_space="raw")


def _keep(llm: Any) -> None:
    """Let an engine last as long as this process: its end would take the ranks' process group with it."""
    _KEPT.append(llm)
    finalizer = getattr(llm.llm_engine.engine_core, "_finalizer", None)
    if finalizer is not None:
        finalizer.atexit = False


def _final_only() -> Any:
    from vllm.sampling_params import RequestOutputKind

    return RequestOutputKind.FINAL_ONLY


def _start(options: VllmRolloutOptions, context: BackendContext, *, sleeps: bool) -> Any:
    """vLLM's engine in this process."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # read when vLLM is imported
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # the console is the run's
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"vllm\.")  # names that torch has changed
    on_gpu = torch.cuda.is_available()
    if not on_gpu:
        for name, value in {**CPU_ENVIRONMENT, "VLLM_CPU_OMP_THREADS_BIND": "nobind"}.items():
            os.environ.setdefault(name, value)
    try:
        from vllm import LLM
    except ImportError as error:
        raise PluginError(
            f"rollout.options.mode is colocated, and vLLM cannot be imported here: {error}",
            hint=f"{INSTALL_HINT}. Or use servers: rollout.options.mode=server",
        ) from error
    threads = torch.get_num_threads()
    arguments: dict[str, Any] = {
        "model": context.model.path,
        "revision": context.model.revision,
        "trust_remote_code": context.model.trust_remote_code,
        "tokenizer": context.model.tokenizer,
        "dtype": _DTYPES[context.trainer.precision],
        # Every weight comes from the trainer. But vLLM keeps the mean and deviation of images as if they were weights.
        "load_format": "auto" if reads_images(model_config(context.model)) else "dummy",
        "generation_config": "vllm",
        "worker_extension_cls": EXTENSION,
        "tensor_parallel_size": options.tensor_parallel,
        "distributed_executor_backend": "external_launcher" if context.world_size > 1 else None,
        "max_num_seqs": options.max_sequences,
        "max_model_len": options.context_tokens,
        "gpu_memory_utilization": options.memory_share,
        "enable_sleep_mode": sleeps,
        "enforce_eager": not on_gpu,
        "enable_chunked_prefill": None if on_gpu else False,  # launch.py says why
        "seed": context.seed,
        "mm_processor_kwargs": processor_arguments(context.model) or None,
        **options.engine,
    }
    try:
        llm = LLM(**{name: value for name, value in arguments.items() if value is not None})
    except (ValueError, TypeError, RuntimeError, OSError, AssertionError) as error:
        raise RolloutError(
            f"vLLM does not start beside the trainer: {error or type(error).__name__}",
            hint="what it is told is rollout.options.memory_share, context_tokens, max_sequences, tensor_parallel and "
            "engine",
        ) from error
    torch.set_num_threads(threads)  # vLLM sets its own, and the trainer's numbers depend on it
    return llm

"""Rollouts from vLLM servers: a `RolloutBackend` that sends prompts out and yields groups as they come back.

Every rank asks the servers by itself. Rank 0 writes the trainer's weights down and brings them to the servers; the
others read the same stream, which says what the servers will call these weights.

Place in the flow: requests → **rollout** → fleet, answers → groups.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

from torch import Tensor

from grpo_core.api import RolloutError, RolloutGroup, RolloutRequest
from grpo_core.backends import BackendContext
from grpo_core.model.load import context_length, count_parameters, model_config
from grpo_core.model.tokenizer import end_token_ids, load_tokenizer
from grpo_core.rollout.requests import check_requests
from grpo_core.rollout.stop import CompletionText
from grpo_rollout_vllm.adapter import ADAPTER_NAME, adapter_label, write_adapter
from grpo_rollout_vllm.answers import Interrupted, OtherWeights, group_of, payload_of, require_room
from grpo_rollout_vllm.connection import Unreachable
from grpo_rollout_vllm.fingerprint import Fingerprint
from grpo_rollout_vllm.fleet import Fleet
from grpo_rollout_vllm.images import PromptImages
from grpo_rollout_vllm.model_facts import model_facts
from grpo_rollout_vllm.options import VllmRolloutOptions
from grpo_rollout_vllm.server import Server
from grpo_rollout_vllm.spool import Spool, in_precision, label_of, passing

__all__ = ["ServerRollout"]

_ATTEMPTS = 5
"""A prompt that so many servers died of is at fault itself."""
_SHARED_MEMORY = Path("/dev/shm")
_BYTES = {"fp32": 4, "bf16": 2}


class ServerRollout:
    """Implements `RolloutBackend` and `LoadsAdapters`."""

    def __init__(self, options: VllmRolloutOptions, context: BackendContext) -> None:
        """Meet the servers; raises `RolloutError` when one is not there in time, or is none for this run."""
        self._options = options
        self._context = context
        tokenizer = load_tokenizer(context.model)
        config = model_config(context.model).get_text_config()
        self._vocab_size = int(config.vocab_size)
        self._context_tokens = context_length(context.model)
        self._end_ids = sorted(end_token_ids(tokenizer, context.model))
        self._text = CompletionText(tokenizer, self._end_ids)
        self._images = PromptImages(context.model)
        self._version, self._label = 0, ""
        self.takes_adapter = options.lora == "adapter" and context.trainer.lora is not None
        facts, key = model_facts(config), _key(options)
        self._spool = Spool(_weights_folder(options, context)) if context.rank == 0 else None
        self._fleet = Fleet(
            [Server(url, options, key=key) for url in options.urls],
            check=lambda server: server.about(facts),
            who=f"rank {context.rank}",
            offset=context.rank,
            prompts_in_flight=options.prompts_in_flight,
            wait_limit_s=options.wait_limit_s,
            look_interval_s=options.look_interval_s,
        )
        try:
            self._fleet.meet()
        except BaseException:
            self.close()
            raise

    def load_weights(self, stream: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Bring every server that is there to these weights. Read to its end on every rank, as it may be collective."""
        stream = in_precision(stream, self._context.trainer.precision)
        if self._spool is None:
            fingerprint = Fingerprint()
            for _ in passing(stream, fingerprint):
                pass
            self._version, self._label = version, label_of(version, fingerprint.text)
            self._fleet.expect(self._label, None)
            return
        spooled = self._spool.write(stream, version)
        self._version, self._label = version, spooled.label
        self._fleet.expect(spooled.label, lambda server, about: server.take_over(spooled, about))
        self._spool.forget_others(spooled.folder)

    def load_adapter(self, write: Callable[[Path], None], version: int) -> None:
        """Bring the trainer's LoRA adapter, and nothing else, to every server that is there."""
        label = adapter_label(version, f"{self._context.run_dir and self._context.run_dir.resolve()}")
        if self._spool is None:
            write(Path())
            self._version, self._label = version, label
            self._fleet.expect(label, None)
            return
        adapter = write_adapter(write, self._spool.folder_of(version), label)
        if not self._label:
            self._fleet.disown()
        self._version, self._label = version, label
        self._fleet.expect(label, lambda server, _: server.take_over_adapter(adapter))
        self._spool.forget_others(adapter.folder)

    def generate(self, requests: Sequence[RolloutRequest]) -> Iterator[RolloutGroup]:
        """Yield each group as it comes back; raises `RolloutError` before the first for requests that cannot be
        answered."""
        if not self._label:
            raise RolloutError("there are no weights yet", hint="call load_weights before generate")
        check_requests(
            requests,
            vocab_size=self._vocab_size,
            context_tokens=self._context_tokens,
            reads_images=self._images.are_read,
        )
        self._check_context(requests)
        return self._groups(requests)

    def close(self) -> None:
        """Leave the servers, and remove the weights that lie about for them."""
        self._fleet.close()
        if self._spool is not None:
            self._spool.close()

    def _groups(self, requests: Sequence[RolloutRequest]) -> Iterator[RolloutGroup]:
        most = min(len(requests), self._options.prompts_in_flight * len(self._options.urls))
        pool = ThreadPoolExecutor(max_workers=max(most, 1), thread_name_prefix="prompt")
        waiting = {pool.submit(self._ask, request) for request in requests}
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, request: RolloutRequest) -> RolloutGroup:
        """One group, from whichever server gives it."""
        adapter = ADAPTER_NAME if self.takes_adapter else None
        payload, what = payload_of(request, self._end_ids, self._images, adapter), f"sample {request.sample.id!r}"
        reasons: list[str] = []
        while len(reasons) < _ATTEMPTS:
            with self._fleet.member_for(what) as member:
                try:
                    answer = member.server.generate(payload)
                    return group_of(request, answer, label=self._label, version=self._version, text=self._text)
                except Unreachable as error:
                    self._fleet.lost(member, str(error))
                    reasons.append(f"{member.server.url}: {error}")
                except Interrupted as error:
                    reasons.append(f"{member.server.url}: {error}")
                except OtherWeights as error:
                    self._fleet.outdated(member, str(error))
                    reasons.append(f"{member.server.url}: it has the weights {error}")
        raise RolloutError(
            f"{what}: {_ATTEMPTS} attempts to have it answered failed: {'; '.join(reasons)}",
            hint="what the servers print says why. If they die of this prompt, leave it out of the dataset; if another "
            "run brings its weights to them, give each run its own",
        )

    def _check_context(self, requests: Sequence[RolloutRequest]) -> None:
        smallest = self._fleet.smallest_context
        if smallest is not None:
            limit, url = smallest
            require_room(
                requests,
                limit,
                f"of the vLLM server {url}",
                hint="start it with a larger --max-model-len, or lower rollout.max_completion_tokens or "
                "dataset.max_prompt_tokens",
            )


def _key(options: VllmRolloutOptions) -> str | None:
    if options.api_key_variable is None:
        return None
    key = os.environ.get(options.api_key_variable)
    if not key:
        raise RolloutError(
            f"the environment has no {options.api_key_variable}",
            hint="rollout.options.api_key_variable names the variable with the servers' key",
        )
    return key


def _weights_folder(options: VllmRolloutOptions, context: BackendContext) -> Path:
    """Where the newest weights lie: two versions of them, for the moment of an update."""
    if options.weights_folder is not None:
        return Path(options.weights_folder).expanduser().resolve()
    needed = 2 * count_parameters(context.model) * _BYTES[context.trainer.precision]
    in_memory = options.transfer != "network" and _SHARED_MEMORY.is_dir()
    if in_memory and shutil.disk_usage(_SHARED_MEMORY).free > 2 * needed:
        return _SHARED_MEMORY
    return (context.run_dir or Path()).resolve() / "weights"

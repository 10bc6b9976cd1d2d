"""What a vLLM worker process does for a run: says what it serves, takes weights over, checks what arrived.

vLLM mixes `Extension` into its worker class (`--worker-extension-cls grpo_rollout_vllm.worker.Extension`) and calls its
methods by name over HTTP, so arguments and results are JSON. Runs in the server's processes, never in a trainer's.

The reload goes layer by layer and keeps one layer twice at most. One that breaks off is undone as far as it can be: the
layers that had not come keep their old weights, so that the next update finds a model it can load into.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
import vllm
from torch import Tensor
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload
from vllm.model_executor.model_loader.reload.layerwise import get_layerwise_info

from grpo_rollout_vllm.broadcast import Broadcast, TensorFact
from grpo_rollout_vllm.fingerprint import Fingerprint
from grpo_rollout_vllm.model_facts import model_facts
from grpo_rollout_vllm.spool import passing, read_tensors

__all__ = ["PROTOCOL", "Extension"]

PROTOCOL = 1
"""Of the methods below; a run and a server must agree on it."""


class Extension:
    """Methods of a worker; `self` is vLLM's worker."""

    rank: int
    device: Any
    vllm_config: Any
    model_runner: Any
    reload_weights: Any

    def grpo_about(self) -> dict[str, Any]:
        """What this server is."""
        config, parallel = self.vllm_config, self.vllm_config.parallel_config
        return {
            "protocol": PROTOCOL,
            "vllm": vllm.__version__,
            "device": self.device.type,
            "workers": parallel.world_size,
            "engines": parallel.data_parallel_size,
            "dtype": str(config.model_config.dtype).partition(".")[2],
            "logprobs": config.model_config.logprobs_mode,
            "context_tokens": config.model_config.max_model_len,
            "sequences": config.scheduler_config.max_num_seqs,
            "model": model_facts(config.model_config.hf_text_config),
        }

    def grpo_sees(self, path: str, content: str) -> dict[str, bool]:
        """Whether a file of the run's machine is on this one too."""
        file = Path(path)
        return {"sees": file.is_file() and file.read_text(encoding="utf-8") == content}

    def grpo_load(self, folder: str, fingerprint: str) -> dict[str, Any]:
        """Take over the weights in a folder."""
        return self._grpo_take_over(read_tensors(Path(folder)), fingerprint)

    def grpo_receive(
        self, host: str, port: int, device: str, tensors: list[list[Any]], fingerprint: str, limit_s: float
    ) -> dict[str, Any]:
        """Take over weights that a run sends to all workers of this server at once."""
        parallel = self.vllm_config.parallel_config
        rank = 1 + parallel.data_parallel_rank * parallel.world_size + self.rank
        members = 1 + parallel.data_parallel_size * parallel.world_size
        where = self.device if device == "cuda" else torch.device("cpu")
        group = Broadcast.join(host, port, rank=rank, members=members, device=where, limit_s=limit_s)
        with group:
            return self._grpo_take_over(group.receive([TensorFact.read(each) for each in tensors]), fingerprint)

    def _grpo_take_over(self, stream: Iterable[tuple[str, Tensor]], expected: str) -> dict[str, Any]:
        arrived = Fingerprint()
        started = _Started(passing(stream, arrived))
        model = self.model_runner.get_model()
        try:
            started.first()  # what cannot be read must not leave a model half loaded
            self.reload_weights(weights_iterator=started)
        except BaseException:
            _break_off(model, self.vllm_config.model_config)
            raise
        _pack_heads(model)
        if arrived.text != expected:
            # Raised, not returned: of several data-parallel engines only the first one's result comes back.
            raise ValueError(
                f"grpo: {arrived.tensors} tensors arrived, with the fingerprint {arrived.text}, not {expected}"
            )
        return {"fingerprint": arrived.text, "tensors": arrived.tensors}


class _Started:
    """An iterator whose first item can be had ahead of time."""

    def __init__(self, stream: Iterator[tuple[str, Tensor]]) -> None:
        self._stream = stream
        self._ahead: list[tuple[str, Tensor]] = []

    def first(self) -> None:
        self._ahead = [item for item in (next(self._stream, None),) if item is not None]

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        yield from self._ahead
        self._ahead = []
        yield from self._stream


def _break_off(model: Any, model_config: Any) -> None:
    """End a reload that failed: layers that are not complete get the weights back that they had."""
    for layer in model.modules():
        info = get_layerwise_info(layer)
        if info.can_load():
            info.loaded_weights.clear()
            info.load_numel = 0
    finalize_layerwise_reload(model, model_config)


def _pack_heads(model: Any) -> None:
    """Pack the output head anew. On a CPU vLLM computes with a packed copy of it, which a reload leaves as it was where
    the head is tied to the embedding: the weights are right then, and what is computed is not."""
    for module in model.modules():
        weight, method = getattr(module, "weight", None), getattr(module, "quant_method", None)
        if hasattr(module, "cpu_linear") and method is not None and weight is not None and weight.numel() > 0:
            method.process_weights_after_loading(module)

"""What a vLLM worker process does for a run: says what it serves, takes weights over, checks what arrived.

vLLM mixes `Extension` into its worker class (`--worker-extension-cls grpo_rollout_vllm.worker.Extension`) and calls its
methods by name over HTTP, so arguments and results are JSON; but for `grpo_take`, it runs in the server's processes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
import vllm
from safetensors.torch import load_file
from torch import Tensor

from grpo_rollout_vllm.adapter import ADAPTER_FILE
from grpo_rollout_vllm.broadcast import Broadcast, TensorFact
from grpo_rollout_vllm.fingerprint import Fingerprint
from grpo_rollout_vllm.model_facts import model_facts
from grpo_rollout_vllm.reload import take_over
from grpo_rollout_vllm.spool import passing, read_tensors

__all__ = ["PROTOCOL", "Extension"]

PROTOCOL = 2
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
        config = self.vllm_config
        return {
            "protocol": PROTOCOL,
            "vllm": vllm.__version__,
            "device": self.device.type,
            "cuts_prompts": config.scheduler_config.enable_chunked_prefill,
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

    def grpo_check_adapter(self, folder: str, fingerprint: str) -> dict[str, bool]:
        """Whether the adapter in a folder is here what it is where it was written."""
        arrived = Fingerprint()
        for _ in passing(load_file(Path(folder) / ADAPTER_FILE).items(), arrived):
            pass
        return {"same": arrived.text == fingerprint}

    def grpo_load(self, folder: str, fingerprint: str) -> dict[str, Any]:
        """Take over the weights in a folder."""
        return self._grpo_take_over(read_tensors(Path(folder)), fingerprint)

    def grpo_receive(
        self,
        host: str,
        port: int,
        secret: str,
        members: int,
        device: str,
        tensors: list[list[Any]],
        fingerprint: str,
        limit_s: float,
    ) -> dict[str, Any]:
        """Take over weights that a run sends to all workers of this server at once; `secret` opens the place where it
        is met."""
        parallel = self.vllm_config.parallel_config
        # The index, not the rank: vLLM makes engines of dense models believe that each is the only one.
        rank = 1 + parallel.data_parallel_index * parallel.world_size + self.rank
        where = self.device if device == "cuda" else torch.device("cpu")
        group = Broadcast.join(host, port, secret, rank=rank, members=members, device=where, limit_s=limit_s)
        with group:
            return self._grpo_take_over(group.receive([TensorFact.read(each) for each in tensors]), fingerprint)

    def grpo_take(self, stream: Iterable[tuple[str, Tensor]]) -> None:
        """Take over weights from this very process, where the engine is beside the trainer."""
        take_over(self.model_runner.get_model(), stream, self.reload_weights, self.vllm_config.model_config)

    def _grpo_take_over(self, stream: Iterable[tuple[str, Tensor]], expected: str) -> dict[str, Any]:
        arrived = Fingerprint()
        self.grpo_take(passing(stream, arrived))
        if arrived.text != expected:
            # Raised, not returned: of several data-parallel engines only the first one's result comes back.
            raise ValueError(
                f"grpo: {arrived.tensors} tensors arrived, with the fingerprint {arrived.text}, not {expected}"
            )
        return {"fingerprint": arrived.text, "tensors": arrived.tensors}

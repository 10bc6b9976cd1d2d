"""The command line of a vLLM server that a run can use, and its environment."""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from grpo_core.backends import ModelSettings

__all__ = ["CPU_ENVIRONMENT", "EXTENSION", "INSTALL_HINT", "is_cpu_build", "server_command", "server_environment"]

EXTENSION = "grpo_rollout_vllm.worker.Extension"
INSTALL_HINT = (
    "pip install vllm==0.32.0, and grpo-core again after it, whose transformers it replaces; docs/engines.md says "
    "under Versions which go together, and what to do without a GPU"
)

_NEEDED = ("--worker-extension-cls", EXTENSION, "--enable-scale-out", "--generation-config", "vllm")
"""Weight transfer; tokens in and out with the version of the weights; no sampling defaults of the model's own."""
_QUIET = ("--disable-uvicorn-access-log",)
"""A run looks after its servers every second or two; what goes wrong is not in that log."""
_ON_A_CPU = ("--enforce-eager", "--no-enable-chunked-prefill")
"""No compiler; and vLLM 0.32 dies on a CPU of a prompt that it cuts in two while completions have seeds."""
_ENVIRONMENT = {
    "VLLM_SERVER_DEV_MODE": "1",  # opens the routes for weights
    "VLLM_NO_USAGE_STATS": "1",
}
CPU_ENVIRONMENT = {
    "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
    "TORCHDYNAMO_DISABLE": "1",  # else the first request waits for a compiler
}
_CACHE = {"VLLM_CPU_KVCACHE_SPACE": "4"}
"""GiB. vLLM's own default is to take 92 % of a CPU's memory, and to refuse to start where other processes use more than
the rest of it."""
_CACHE_OPTIONS = ("--gpu-memory-utilization", "--kv-cache-memory-bytes")


def server_command(model: ModelSettings, *, host: str, port: int, arguments: Sequence[str]) -> list[str]:
    """What to run; `arguments` are added at the end and win."""
    own = _ON_A_CPU if is_cpu_build() else ()
    # Not `vllm serve`: that looks for a distribution named vllm, which the CPU build is not.
    start = [sys.executable, "-P", "-m", "vllm.entrypoints.openai.api_server"]  # -P: nothing of the working folder
    return [*start, *_which(model), "--host", host, "--port", str(port), *_NEEDED, *_QUIET, *own, *arguments]


def _which(model: ModelSettings) -> Iterator[str]:
    yield from ("--model", model.path)
    if model.tokenizer is not None:
        yield from ("--tokenizer", model.tokenizer)
    if model.revision is not None:
        yield from ("--revision", model.revision)
    if model.trust_remote_code:
        yield "--trust-remote-code"
    if model.max_pixels is not None:
        from grpo_rollout_vllm.images import processor_arguments  # torch, which starting a server does without

        if bound := processor_arguments(model):
            yield from ("--mm-processor-kwargs", json.dumps(bound))


def server_environment(arguments: Sequence[str], given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The settings it needs, beside those it finds; what the user set stays."""
    names = {argument.partition("=")[0] for argument in arguments}
    lora = {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"} if "--enable-lora" in names else {}
    own: dict[str, str] = {}
    if is_cpu_build():
        own = {**CPU_ENVIRONMENT, **({} if names.intersection(_CACHE_OPTIONS) else _CACHE)}
    return {**_ENVIRONMENT, **lora, **own, **given}


def is_cpu_build() -> bool:
    """Whether vLLM here is the one for CPUs."""
    try:
        importlib.metadata.version("vllm-cpu")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True

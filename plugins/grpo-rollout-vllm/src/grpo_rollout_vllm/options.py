"""Options of the `vllm` rollout; what every rollout has is in core's `RolloutSettings`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from grpo_core.backends import Recipe

__all__ = ["VllmRolloutOptions"]


_PROCESSES = (
    *("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "data_parallel_size_local"),
    "distributed_executor_backend",
)


def _address(text: str) -> str:
    if not re.fullmatch(r"https?://[^/\s]+/?", text):
        raise ValueError(f"'{text}' is no address of a server: write http://HOST:PORT, without a path")
    return text


_CODE_ARGUMENTS = frozenset(
    (
        *("trust_remote_code", "worker_cls", "worker_extension_cls", "scheduler_cls", "logits_processors"),
        *("distributed_executor_backend", "model_impl", "model", "tokenizer", "hf_overrides", "io_processor_plugin"),
    )
)
"""Arguments of `LLM` that may lead to code that is not vLLM's."""
Url = Annotated[str, AfterValidator(_address)]


class VllmRolloutOptions(BaseModel):
    """Where vLLM runs, how weights get there, and how long anything may take."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    mode: Literal["server", "colocated"] = "server"
    """`server`: ask servers that run elsewhere. `colocated`: an engine in the processes that train."""
    urls: tuple[Url, ...] = ("http://127.0.0.1:8000",)
    """Servers started by `grpoctl rollout`. Requests go to whichever has least to do."""
    api_key_variable: str | None = None
    """The environment variable with the key of servers started with `--api-key`."""
    transfer: Literal["auto", "folder", "network"] = "auto"
    """How weights reach a server: it reads the folder that the run writes them to (shared memory, or a disk that both
    see), or they are sent to its workers (NCCL between GPUs, gloo otherwise). auto: the folder where the server sees
    it."""
    lora: Literal["merged", "adapter"] = "merged"
    """What goes to servers of a run that trains a LoRA adapter: the whole model with the adapter merged in, or the
    adapter alone. `adapter` needs servers started with `--enable-lora --max-lora-rank R` on the run's own model, that
    see `weights_folder`."""
    weights_folder: str | None = None
    """Where the newest weights lie until the next update, for servers to read now and for those that come back later.
    Default: shared memory where it has room, else the run's folder."""
    transfer_host: str | None = None
    """This machine's address for servers that are sent weights, and the only one where they can fetch them; default:
    the one that it reaches them from."""
    prompts_in_flight: int = Field(default=64, ge=1, le=1024)
    """The most prompts that one process has with one server at a time; a prompt is sent once for all its
    completions. A thread waits for each."""
    wait_limit_s: float = Field(default=600.0, ge=1e-3, le=1e6)
    """The run stops when no server can be asked for longer than this: none is up, or none has the newest weights."""
    silence_limit_s: float = Field(default=120.0, ge=1e-3, le=1e6)
    """A server that does not say for so long which weights it has is taken for dead, and its prompts go elsewhere."""
    request_limit_s: float = Field(default=3600.0, ge=1e-3, le=1e6)
    """The longest that the completions of one prompt may take."""
    transfer_limit_s: float = Field(default=600.0, ge=1e-3, le=1e6)
    """The longest that bringing the weights to one server may take."""
    look_interval_s: float = Field(default=2.0, ge=1e-3, le=1e6)
    """How often each server is looked after."""
    tensor_parallel: int = Field(default=1, ge=1, le=1024)
    """Colocated: over how many neighbouring ranks one engine is spread. Divides the number of ranks."""
    memory_share: float = Field(default=0.3, ge=0.01, lt=1)
    """Colocated: the share of each GPU's memory that the engine takes, weights and KV cache together."""
    context_tokens: int | None = Field(default=None, ge=2, le=10**9)
    """Colocated: the most tokens of prompt and completion together; default: the model's context."""
    max_sequences: int = Field(default=256, ge=1, le=10**6)
    """Colocated: the most completions that are generated at once."""
    sleep: bool = True
    """Colocated: give the GPU memory of the engine back while the trainer computes."""
    engine: dict[str, Any] = Field(default_factory=dict)
    """Colocated: further arguments of vLLM's `LLM`, but for those that start processes: there is one engine a rank, or
    one for `tensor_parallel` of them."""

    def named_code(self) -> Iterator[str]:
        """The arguments of vLLM that have it import code."""
        for name in sorted(_CODE_ARGUMENTS & self.engine.keys()):
            yield f"vLLM's {name}={self.engine[name]!r}"

    @field_validator("urls")
    @classmethod
    def _some(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("there is no server in it: give one address at least")
        return value

    @field_validator("engine")
    @classmethod
    def _no_processes(cls, value: dict[str, Any]) -> dict[str, Any]:
        more = [name for name in value if name in _PROCESSES]
        if more:
            raise ValueError(f"{more[0]} would start processes beside the ranks; set rollout.options.tensor_parallel")
        return value

    def contradictions(self, recipe: Recipe) -> Iterator[tuple[str, str]]:
        """What in these options cannot be with each other or with the rest of a recipe; asked when a run is planned."""
        colocated, adapter = self.mode == "colocated", self.lora == "adapter"
        if colocated and recipe.rollout.max_staleness:
            yield (
                "rollout.max_staleness",
                "an engine in the processes that train cannot generate meanwhile; leave it at 0, or use servers: "
                "rollout.options.mode=server",
            )
        if colocated and adapter:
            yield (
                "rollout.options.lora",
                "an engine in the processes that train gets whole weights; leave it at merged, or use servers",
            )
        if not colocated and adapter and self.transfer == "network":
            yield "rollout.options.lora", "servers read an adapter from a folder; set rollout.options.transfer to auto"
        if adapter and recipe.trainer.lora is None:
            yield "rollout.options.lora", "there is no adapter: set trainer.lora, or leave this at merged"

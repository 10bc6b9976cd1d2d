"""Options of the `deepspeed` trainer; what every trainer has is in core's `TrainerSettings`.

A DeepSpeed JSON is read here, when a run is planned, so that ranks need no file; what of it contradicts the recipe is
found by `config.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from grpo_core.backends import Recipe
from grpo_trainer_deepspeed.config import problems

__all__ = ["DeepSpeedOptions"]

Stage = Literal[0, 1, 2, 3]
DEFAULT_STAGE: Stage = 3


class DeepSpeedOptions(BaseModel):
    """How the `deepspeed` trainer uses its machines; none of it changes what is computed, save for rounding."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the model lives; auto: a GPU when there is one."""
    attention: Literal["eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention"] | None = None
    """Implementation of attention, by transformers' name; default: what transformers chooses for the model."""
    chunk_tokens: int | None = Field(default=None, ge=1, le=10**9)
    """Tokens whose full-vocabulary logits exist at once; default: as many as fill 256 MiB."""
    stage: Stage | None = None
    """What ZeRO spreads over the ranks. 0: nothing; 1: AdamW's numbers and fp32 masters; 2: gradients too; 3: weights
    too. Default: that of `config`, else 3."""
    fp16: bool = False
    """Weights and activations in fp16 with a loss scale that adapts, for GPUs without bf16; masters stay fp32. Needs
    `trainer.precision: fp32`."""
    offload_optimizer: bool = False
    """Keep AdamW's numbers and masters in main memory, and step there; from stage 1."""
    offload_parameters: bool = False
    """Keep weights in main memory too, and bring each layer to the GPU when it is needed; stage 3."""
    cpu_adam: bool = False
    """With `offload_optimizer`: DeepSpeed's own AdamW for CPUs. Faster, compiled at the first use, and a resumed run is
    then not bit-identical."""
    config: dict[str, Any] | None = None
    """A DeepSpeed JSON, or the path of one: everything it says that the recipe does not decide."""

    @field_validator("config", mode="before")
    @classmethod
    def _read(cls, value: object) -> object:
        return _read_json(Path(value)) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.offload_optimizer and self.zero_stage == 0:
            raise ValueError("offload_optimizer needs a stage of 1, 2 or 3; stage 0 spreads nothing")
        if self.offload_parameters and self.zero_stage != 3:
            raise ValueError(f"offload_parameters needs stage 3, and stage is {self.zero_stage}")
        if self.cpu_adam and not self.offload_optimizer:
            raise ValueError("cpu_adam steps in main memory: it needs offload_optimizer")
        return self

    @property
    def zero_stage(self) -> Stage:
        """The stage that is meant."""
        if self.stage is not None:
            return self.stage
        zero = (self.config or {}).get("zero_optimization")
        named = zero.get("stage") if isinstance(zero, dict) else None
        return named if named in (0, 1, 2, 3) else DEFAULT_STAGE

    def contradictions(self, recipe: Recipe) -> Iterator[tuple[str, str]]:
        """What in these options and in the JSON cannot be with the rest of a recipe; asked when a run is planned."""
        yield from ((problem.path, problem.message) for problem in problems(self, recipe.trainer))

    def memory_shares(self, ranks: int, value_bytes: int) -> dict[str, float]:
        """What one of `ranks` keeps of each kind of a GPU's memory, for core's estimate; `value_bytes` are those of a
        weight."""
        stage, share = self.zero_stage, 1.0 / ranks
        spread = ("masters", "optimiser"), ("gradients",), ("weights", "reference")
        shares = {name: share for names in spread[:stage] for name in names}
        if stage in (1, 2) and value_bytes < 4:  # in the type of the weights, beside their sums in fp32
            sums = 0.0 if stage == 2 and self.offload_optimizer else shares.get("gradients", 1.0)
            shares["gradients"] = sums + value_bytes / 4
        if self.offload_optimizer:
            shares |= {"masters": 0.0, "optimiser": 0.0}
        if self.offload_parameters:
            shares |= {"weights": 0.0, "reference": 0.0}
        return shares | ({"gathered weights": 1.0} if stage == 3 else {})


def _read_json(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}; a path starts at the working directory") from None
    except ValueError as error:
        raise ValueError(f"{path} is no JSON: {error}") from None
    if not isinstance(read, dict):
        raise ValueError(f"{path} holds a {type(read).__name__}; a DeepSpeed configuration is an object")
    return read

"""Options of the `torch` trainer; what every trainer has is in `recipe/schema.py` (`TrainerSettings`)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["TorchTrainerOptions"]

MASTER_BYTES = 4
"""Of a master weight, in fp32."""


class TorchTrainerOptions(BaseModel):
    """How the `torch` trainer uses its machine; none of it changes what is computed, save for rounding."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the model lives; auto: a GPU when there is one."""
    attention: Literal["eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention"] | None = None
    """Implementation of attention, by transformers' name; default: what transformers chooses for the model."""
    sharding: Literal["none", "full"] = "none"
    """On several ranks. none: each has all weights, and gradients are summed. full: weights, gradients and AdamW's
    numbers are spread over them (FSDP2), for models that do not fit; slower."""
    chunk_tokens: int | None = Field(default=None, ge=1, le=10**9)
    """Tokens whose full-vocabulary logits exist at once; default: as many as fill 256 MiB."""

    def memory_shares(self, ranks: int, value_bytes: int) -> dict[str, float]:
        """What one of `ranks` keeps of each kind of memory, as `recipe/memory.py` asks; `value_bytes` are those of a
        weight."""
        if self.sharding == "none" or ranks == 1:
            return {}
        return {
            "weights": MASTER_BYTES / value_bytes / ranks,  # what is spread is the masters
            "masters": 0.0,
            "gradients": 1.0 / ranks,
            "optimiser": 1.0 / ranks,
            "reference": 1.0 / ranks,
            "gathered weights": 1.0,
        }

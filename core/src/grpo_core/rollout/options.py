"""Options of the `transformers` rollout; what every rollout has is in `recipe/schema.py` (`RolloutSettings`)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["TransformersRolloutOptions"]


class TransformersRolloutOptions(BaseModel):
    """How the `transformers` backend uses its machine; none of it changes what is drawn, save for rounding."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    max_sequences: int = Field(default=512, ge=1, le=10**6)
    """The most completions decoded at once. Groups stay whole: one that is larger is decoded alone."""
    prefill_tokens: int = Field(default=8192, ge=1, le=10**9)
    """The most prompt tokens (padding included) of one forward pass; a longer prompt goes alone."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where weights that arrive as a stream are kept; auto: a GPU when there is one. Shared weights stay where the
    trainer has them."""

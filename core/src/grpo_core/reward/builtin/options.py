"""Options of the built-in rewards."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["RepetitionOptions", "SoftOverlongOptions"]


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)


class RepetitionOptions(_Options):
    """Of `repetition`."""

    ngram_size: int = Field(default=3, ge=1, le=10**6)
    """Tokens of one n-gram."""
    max_penalty: float = Field(default=-1.0, ge=-1e6, le=0)
    """The score of a completion that repeats a single n-gram for ever; never positive, which would pay for it."""


class SoftOverlongOptions(_Options):
    """Of `soft_overlong`."""

    max_length: int = Field(ge=1, le=10**9)
    """Tokens at which the penalty reaches -1; as a rule `rollout.max_completion_tokens`."""
    cache_length: int = Field(ge=1, le=10**9)
    """The last so many tokens before `max_length`, over which it grows."""

    @model_validator(mode="after")
    def _cache_fits(self) -> Self:
        if self.cache_length > self.max_length:
            raise ValueError(f"cache_length={self.cache_length} is more than max_length={self.max_length}")
        return self

"""Options of `cosine`."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["CosineOptions"]

_Score = Annotated[float, Field(ge=-1e6, le=1e6)]


class CosineOptions(BaseModel):
    """The scores at both ends of the schedule, and its length."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    max_len: int = Field(default=1000, ge=1, le=10**9)
    """Tokens at which the schedule ends, as a rule `rollout.max_completion_tokens`; more tokens score as so many."""
    correct_short: _Score = 1.0
    """A right answer of no tokens."""
    correct_long: _Score = 0.5
    """A right answer of `max_len` tokens."""
    wrong_short: _Score = -1.0
    """A wrong answer of no tokens."""
    wrong_long: _Score = -0.5
    """A wrong answer of `max_len` tokens."""

    @model_validator(mode="after")
    def _right_is_better(self) -> Self:
        if min(self.correct_short, self.correct_long) < max(self.wrong_short, self.wrong_long):
            raise ValueError("some wrong answers would score more than some right ones")
        return self

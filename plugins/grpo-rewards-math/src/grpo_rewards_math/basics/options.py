"""What can be set about `math_basics`: which problems are made, how large their numbers are, and how they are put."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

__all__ = ["Kind", "MathBasicsOptions"]

Kind = Literal["expression", "equation", "remainder", "fraction"]


class MathBasicsOptions(BaseModel):
    """Options of the dataset `math_basics`."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    kinds: tuple[Kind, ...] = ("expression", "equation", "remainder", "fraction")
    """Which problems, equally likely: `expression` (7+3*4, parentheses too), `equation` (3*x+4=19), `remainder`
    (17 mod 5), `fraction` (1/2+1/3)."""
    numbers: int = Field(default=3, ge=2, le=6)
    """How many numbers an expression has."""
    max_value: int = Field(default=20, ge=5, le=1000)
    """The largest number of an expression or fraction, the largest solution of an equation, the largest divisor."""
    rows: int | None = Field(default=None, ge=1, le=10**7)
    """How many training rows are made; default: 20,000, or all there are when these options allow fewer."""
    style: Literal["full", "short"] = "full"
    """The prompt's wording: `full` explains the task, for models that read; `short` is a few tokens, for models that
    were warmed up on it."""

    @field_validator("kinds")
    @classmethod
    def _some_kinds(cls, value: tuple[Kind, ...]) -> tuple[Kind, ...]:
        if not value or len(set(value)) < len(value):
            raise ValueError(f"{list(value)} is not a choice of kinds without repeats; write for instance [expression]")
        return value

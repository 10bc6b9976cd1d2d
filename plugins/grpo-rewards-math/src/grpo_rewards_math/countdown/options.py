"""What can be set about the Countdown dataset: the problems it makes, and how its prompt asks for the answer."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

__all__ = ["CountdownOptions"]


class CountdownOptions(BaseModel):
    """Options of the dataset `countdown`. Rows of a file or hub use `style`, `template` and `operations` only, and
    `examples`, whose problems are made by the other options."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    min_numbers: int = Field(default=3, ge=2, le=8)
    """The fewest numbers of a problem."""
    max_numbers: int = Field(default=4, ge=2, le=8)
    """The most numbers of a problem; every count between the two is equally likely."""
    min_value: int = Field(default=1, ge=0, le=10**9)
    """The smallest number that may be given."""
    max_value: int = Field(default=99, ge=1, le=10**9)
    """The largest number that may be given."""
    min_target: int = Field(default=1, ge=0, le=10**9)
    """The smallest target."""
    max_target: int = Field(default=100, ge=0, le=10**9)
    """The largest target."""
    operations: str = "+-*/"
    """The operations that a solution may use, written together. A problem that is made here divides only where
    nothing remains."""
    rows: int | None = Field(default=None, ge=1, le=10**7)
    """How many training rows are made; default: 20,000, or all there are when these options allow fewer."""
    style: Literal["full", "short"] = "full"
    """The prompt's wording: `full` explains the task, for models that read; `short` is a few tokens, for models that
    were warmed up on it."""
    template: str | None = None
    """A wording of your own instead of `style`; {numbers} and {target} are replaced, and {operations} if present."""

    examples: int = Field(default=0, ge=0, le=32)
    """How many solved problems, of the kind that these options make, are shown as earlier turns of every prompt."""

    @field_validator("operations")
    @classmethod
    def _known_operations(cls, value: str) -> str:
        if not value or set(value) - set("+-*/") or len(set(value)) < len(value):
            raise ValueError(f"{value!r} is not a choice of + - * / without repeats; write for instance '+-*'")
        return value

    @field_validator("template")
    @classmethod
    def _states_the_problem(cls, value: str | None) -> str | None:
        missing = [name for name in ("{numbers}", "{target}") if value is not None and name not in value]
        if missing:
            raise ValueError(f"the template lacks {' and '.join(missing)}: the model would not see the problem")
        return value

    @model_validator(mode="after")
    def _ranges_are_not_empty(self) -> Self:
        for what in ("numbers", "value", "target"):
            low, high = getattr(self, f"min_{what}"), getattr(self, f"max_{what}")
            if low > high:
                raise ValueError(f"min_{what} = {low} is larger than max_{what} = {high}; swap them")
        return self

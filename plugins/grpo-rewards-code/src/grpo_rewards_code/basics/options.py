"""What can be set about `code_basics`: what the functions take, how much they do, and how they are tested."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

__all__ = ["CodeBasicsOptions", "Form", "Kind"]

Kind = Literal["list", "string", "arithmetic"]
Form = Literal["call", "stdin", "assert"]


class CodeBasicsOptions(BaseModel):
    """Options of the dataset `code_basics`."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    kinds: tuple[Kind, ...] = ("list", "string", "arithmetic")
    """What the function takes, equally likely: a list of whole numbers, a text, or a whole number."""
    forms: tuple[Form, ...] = ("call",)
    """How the program is tested, equally likely: `call` (the function is called), `stdin` (a script reads a line and
    prints), `assert` (assertions about the function)."""
    min_steps: int = Field(default=1, ge=1, le=5)
    """The fewest things a function does one after the other."""
    max_steps: int = Field(default=3, ge=1, le=5)
    """The most; every number between the two is equally likely."""
    tests: int = Field(default=5, ge=2, le=50)
    """Tests of a problem."""
    rows: int | None = Field(default=None, ge=1, le=10**7)
    """How many training rows are made; default: 2,000, or all there are when these options allow fewer."""
    style: Literal["full", "short"] = "full"
    """The prompt's wording: `full` explains the task, for models that read; `short` is a few tokens, for models that
    were warmed up on it."""

    @field_validator("kinds", "forms")
    @classmethod
    def _some(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or len(set(value)) < len(value):
            raise ValueError(f"{list(value)} is not a choice without repeats; name one at least")
        return value

    @model_validator(mode="after")
    def _range_is_not_empty(self) -> Self:
        if self.min_steps > self.max_steps:
            raise ValueError(f"min_steps = {self.min_steps} is larger than max_steps = {self.max_steps}; swap them")
        return self

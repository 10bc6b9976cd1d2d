"""What can be set about the datasets with images."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from grpo_datasets_vision.scenes.problem import Question

__all__ = ["ClevrCountOptions", "PictureOptions"]


class PictureOptions(BaseModel):
    """Options of the datasets `geoqa` and `open_r1_multimodal`."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    without_image: Literal["error", "drop", "keep"] = "error"
    """What becomes of a row that has no image: an `error` that names it, `drop` leaves it out, counted, and `keep` asks
    its question as text."""


class ClevrCountOptions(PictureOptions):
    """Options of the dataset `clevr_count`. Rows of a file or hub use `instruction` and `without_image` only; the
    others are about scenes that are made here."""

    instruction: str = (
        "Output the thinking process in <think> </think> and final answer (number) in <answer> </answer> tags."
    )
    """What is appended to each question, after a blank; empty: nothing is."""
    rows: int = Field(default=2000, ge=1, le=10**6)
    """How many training scenes are made; each takes some milliseconds."""
    pixels: int = Field(default=224, ge=56, le=1024)
    """Of each side of a picture."""
    min_count: int = Field(default=3, ge=1, le=10)
    """The smallest answer."""
    max_count: int = Field(default=10, ge=1, le=10)
    """The largest answer; all between the two are equally likely."""
    max_objects: int = Field(default=11, ge=1, le=12)
    """The most objects in a scene that is asked about a part of them."""
    questions: tuple[Question, ...] = ("all",)
    """What is asked: for `all` objects, those of a `colour`, a `shape` or a `material`, or of a colour and a shape
    (`both`); with several each is as likely."""

    @field_validator("instruction")
    @classmethod
    def _without_image_sign(cls, value: str) -> str:
        if "<image>" in value:
            raise ValueError("<image> stands for an image of the row, which an instruction has none of; leave it out")
        return value.strip()

    @field_validator("questions")
    @classmethod
    def _asks_something(cls, value: tuple[Question, ...]) -> tuple[Question, ...]:
        if not value:
            raise ValueError("there is no question in it; write for instance [all, colour]")
        return value

    @model_validator(mode="after")
    def _range_is_not_empty(self) -> Self:
        if self.min_count > self.max_count:
            raise ValueError(f"min_count = {self.min_count} is larger than max_count = {self.max_count}; swap them")
        return self

"""What can be set about the datasets with images."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

__all__ = ["ClevrCountOptions", "PictureOptions"]


class PictureOptions(BaseModel):
    """Options of the datasets `geoqa` and `open_r1_multimodal`."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    without_image: Literal["error", "drop", "keep"] = "error"
    """What becomes of a row that has no image: an `error` that names it, `drop` leaves it out, counted, and `keep` asks
    its question as text."""


class ClevrCountOptions(PictureOptions):
    """Options of the dataset `clevr_count`."""

    instruction: str = (
        "Output the thinking process in <think> </think> and final answer (number) in <answer> </answer> tags."
    )
    """What is appended to each question, after a blank; empty: nothing is."""

    @field_validator("instruction")
    @classmethod
    def _without_image_sign(cls, value: str) -> str:
        if "<image>" in value:
            raise ValueError("<image> stands for an image of the row, which an instruction has none of; leave it out")
        return value.strip()

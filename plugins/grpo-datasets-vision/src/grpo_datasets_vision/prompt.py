"""Rows with an image, a problem and a solution -> samples.

The columns are read as core reads them, so files with `images`, `query` or `messages` do as well as the hubs' `image`
and `problem`. Every other column is kept; the reward reads `solution`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from grpo_core.api import BuildContext, DataError, Preprocessor, Sample, sample_of
from grpo_datasets_vision.options import ClevrCountOptions, PictureOptions

__all__ = ["make", "make_clevr_count"]


def make(options: PictureOptions, context: BuildContext) -> Preprocessor:
    """Build the preprocessor of `geoqa` and `open_r1_multimodal`: the question as it is, with its image."""

    def to_sample(row: Mapping[str, object], /) -> Sample | None:
        sample = sample_of(row)
        if sample.images or options.without_image == "keep":
            return sample
        if options.without_image == "drop":
            return None
        raise _no_image(row)

    return to_sample


def make_clevr_count(options: ClevrCountOptions, context: BuildContext) -> Preprocessor:
    """Build the preprocessor of `clevr_count`, whose questions don't say how they are to be answered: it is added."""
    plain = make(options, context)

    def to_sample(row: Mapping[str, object], /) -> Sample | None:
        sample = plain(row)
        if sample is None or not options.instruction:
            return sample
        question = sample.messages[-1]
        asked = replace(question, content=f"{question.content} {options.instruction}")
        return replace(sample, messages=(*sample.messages[:-1], asked))

    return to_sample


def _no_image(row: Mapping[str, object]) -> DataError:
    for column in ("image", "images"):
        if column in row:
            return DataError(
                f"column {column}: the row has no image, and its question is about one",
                hint="Add the image, or leave such rows out: --set dataset.options.without_image=drop (or keep them).",
            )
    likely = next((name for name, cell in row.items() if _may_be_image(cell)), "OLD")
    return DataError(
        f"no column has an image; the columns are {', '.join(row) or 'none'}",
        hint=f"If another column holds it, rename that: --columns {likely}=image.",
    )


def _may_be_image(cell: object) -> bool:
    if isinstance(cell, str):
        return cell.lower().endswith((".png", ".jpg", ".jpeg", ".webp"))
    return isinstance(cell, bytes) or (isinstance(cell, Mapping) and "bytes" in cell)

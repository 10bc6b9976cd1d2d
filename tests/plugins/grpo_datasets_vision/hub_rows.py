"""Rows with the columns and types that the three datasets have on the hubs, as the Parquet file that lies there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import datasets

from tests.vl_models import encoded_picture

GEOMETRY = (
    "As shown in the figure, in triangle ABC, it is known that angle A = {a}.0, angle B = {b}.0, DE is parallel to BC, "
    "then the size of angle CED is ()"
)


def clevr_rows(count: int) -> list[dict[str, object]]:
    """Of `leonardPKU/clevr_cogen_a_train`."""
    return [
        {
            "image": {"bytes": encoded_picture(row, (48, 32)), "path": f"CLEVR_trainA_{row:06d}.png"},
            "problem": "How many items are there in the image?",
            "solution": f"<answer> {1 + row % 5} </answer>",
        }
        for row in range(count)
    ]


def geoqa_rows(count: int) -> list[dict[str, object]]:
    """Of `leonardPKU/GEOQA_R1V_Train_8K`; figures are of all sizes."""
    return [
        {
            "image": {"bytes": encoded_picture(row, (40 + 8 * (row % 5), 72 - 8 * (row % 3))), "path": None},
            "problem": GEOMETRY.format(a=70 + row % 10, b=60),
            "solution": f"<answer> {130 + row % 10}° </answer>",
        }
        for row in range(count)
    ]


def open_r1_rows(count: int) -> list[dict[str, object]]:
    """Of `lmms-lab/multimodal-open-r1-8k-verified`: the solution has its reasoning before the answer."""
    return [
        {
            "image": {"bytes": encoded_picture(row, (64, 48), "JPEG"), "path": f"{row}.jpg"},
            "problem": f"Based on the chart, how many more were sold in May than in April? Row {row}.",
            "solution": f"<think>May ends at {row + 9}, April at 9.</think>\n\n<answer>{row}</answer>",
            "original_question": f"How many more were sold in May? Row {row}.",
            "original_answer": str(row),
        }
        for row in range(count)
    ]


def write_parquet(file: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    """Write rows as the library uploads them: an `Image` is a struct of bytes and path, and its type is noted."""
    texts = {name: datasets.Value("string") for name in rows[0] if name != "image"}
    features = datasets.Features({"image": datasets.Image(), **texts})
    table = {name: [row[name] for row in rows] for name in rows[0]}
    file.parent.mkdir(parents=True, exist_ok=True)
    datasets.Dataset.from_dict(table, features=features).to_parquet(file)
    return file

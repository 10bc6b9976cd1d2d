"""Images of local rows are looked at before anything else: an error that names the row, or dropped and counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grpo_core.cli.planning import gather, make_plan
from grpo_core.data.prepare import Data, load_data
from grpo_core.errors import DataError
from grpo_core.types import BuildContext
from tests.vl_models import encoded_picture

ROWS = [
    {"query": "<image>How many?", "image": "good.png", "solution": "1"},
    {"query": "<image>How many?", "image": "gone.png", "solution": "2"},
    {"query": "no image", "image": None, "solution": "3"},
    {"query": "<image>How many?", "image": "text.png", "solution": "4"},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "good.png").write_bytes(encoded_picture(1))
    (tmp_path / "text.png").write_text("not a picture", encoding="utf-8")
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return rows


def load(file: Path, *settings: str) -> Data:
    flags = {"model": "none", "dataset": str(file), "rewards": "format_reward", "set_": list(settings)}
    plan, _ = make_plan(gather(None, flags))
    return load_data(plan, BuildContext())


def test_a_missing_image_is_an_error_that_names_row_and_file(file: Path) -> None:
    with pytest.raises(
        DataError, match=r"rows.jsonl line 2: the image 'gone.png' cannot be read: No such file"
    ) as told:
        load(file)
    assert "dataset.bad_images=drop" in str(told.value.hint)


def test_rows_with_bad_images_are_dropped_and_counted_by_choice(file: Path) -> None:
    data = load(file, "dataset.bad_images=drop")
    assert [sample.id for sample in data.train] == ["train-000000", "train-000002"]
    assert data.dropped["an image of them is missing or broken"] == 2
    assert [len(sample.images) for sample in data.train] == [1, 0]


def test_when_no_row_is_left_the_reason_is_told(file: Path, tmp_path: Path) -> None:
    only = tmp_path / "only.jsonl"
    only.write_text(json.dumps(ROWS[1]) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"no row is left: 1 were read, an image of them is missing or broken"):
        load(only, "dataset.bad_images=drop")

"""Which split is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.data.split import file_split, take_split
from grpo_core.errors import DataError


@pytest.mark.parametrize(
    ("file", "split"),
    [
        ("train.jsonl", "train"),
        ("train-00000-of-00002.parquet", "train"),
        ("test/rows.jsonl", "test"),
        ("data/val_1.csv", "validation"),
        ("dev.json", "validation"),
        ("Eval.json", "evaluation"),
        ("trainer_notes.jsonl", None),
        ("rows.jsonl", None),
    ],
)
def test_a_file_belongs_to_the_split_its_name_begins_with(file: str, split: str | None) -> None:
    assert file_split(Path(file)) == split


def test_the_named_split_is_taken_also_by_a_common_short_name() -> None:
    assert take_split(["train", "test"], "test", purpose="train", where="x") == "test"
    assert take_split(["train", "validation"], "val", purpose="train", where="x") == "validation"


def test_a_split_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(DataError, match="rows: there is no split 'dev'; it has train, test"):
        take_split(["train", "test"], "dev", purpose="train", where="rows")


def test_training_takes_the_training_split_and_either_purpose_the_only_one() -> None:
    assert take_split(["test", "train"], None, purpose="train", where="x") == "train"
    assert take_split(["test"], None, purpose="train", where="x") == "test"
    assert take_split(["test"], None, purpose="evaluation", where="x") == "test"


@pytest.mark.parametrize(("available", "purpose"), [(["train", "test"], "evaluation"), (["a", "b"], "train")])
def test_an_open_choice_is_an_error_with_the_splits(available: list[str], purpose: str) -> None:
    with pytest.raises(DataError, match=r"x: has several splits: (.|\n)*\?split="):
        take_split(available, None, purpose=purpose, where="x")


@pytest.mark.parametrize("asked", ["train[:1000]", "train[10%:]", "train+test"])
def test_parts_and_sums_of_splits_are_refused_with_what_works_instead(asked: str) -> None:
    with pytest.raises(DataError, match=r"is no split; parts and sums(.|\n)*#1000(.|\n)*mix"):
        take_split(["train", "test"], asked, purpose="train", where="x")

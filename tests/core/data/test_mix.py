"""Samples of several datasets: each in its own way, told apart by ids and a column, with their share of evaluation."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from grpo_core.data.prepare import Data, load_data
from grpo_core.errors import DataError
from grpo_core.recipe.plan import PlannedDataset
from grpo_core.types import BuildContext, Sample
from tests.core.data.fakes import component, plan_of, sums, write_rows

CONTEXT = BuildContext(seed=0)


def part(folder: Path, name: str, *rows: dict[str, Any], **planned: Any) -> PlannedDataset:
    """A dataset of a mix."""
    file = write_rows(folder / f"{name}.jsonl", list(rows))
    return PlannedDataset(name=name, reference=str(file), **planned)


def maths(folder: Path, count: int = 6, **planned: Any) -> PlannedDataset:
    return part(folder, "maths", *({"query": f"m{row}", "solution": str(row)} for row in range(count)), **planned)


def code(folder: Path, count: int = 6, **planned: Any) -> PlannedDataset:
    return part(folder, "code", *({"query": f"c{row}", "tests": [row]} for row in range(count)), **planned)


def load(*datasets: PlannedDataset, evaluation: PlannedDataset | None = None, **data: Any) -> Data:
    return load_data(plan_of(*datasets, evaluation=evaluation, **data), CONTEXT)


def origins(samples: tuple[Sample, ...]) -> Counter[object]:
    return Counter(sample.columns["dataset"] for sample in samples)


def test_samples_say_which_dataset_they_are_of_and_ids_stay_unique(tmp_path: Path) -> None:
    data = load(maths(tmp_path, 2), code(tmp_path, 2))
    assert [sample.id for sample in data.train] == [
        *("train-maths-000000", "train-maths-000001"),
        *("train-code-000000", "train-code-000001"),
    ]
    assert [dict(sample.columns) for sample in data.train[::2]] == [
        {"dataset": "maths", "solution": "0", "tests": None},
        {"dataset": "code", "tests": [0], "solution": None},
    ]
    assert data.columns == {"dataset", "solution", "tests"}


def test_each_dataset_has_its_own_renames_preprocessor_and_system_prompt(tmp_path: Path) -> None:
    one = part(tmp_path, "one", {"text": "a"}, columns={"text": "query"}, system="Be brief.")
    other = part(tmp_path, "other", {"query": "b"}, preprocess=component("upper"))
    messages = [[message.content for message in sample.messages] for sample in load(one, other).train]
    assert messages == [["Be brief.", "a"], ["B"]]


def test_a_rename_that_one_dataset_cannot_do_names_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"code\.jsonl: --columns solution=gold: the dataset has no column solution"):
        load(maths(tmp_path), code(tmp_path, columns={"solution": "gold"}))


def test_a_column_of_that_name_must_be_renamed(tmp_path: Path) -> None:
    own = part(tmp_path, "own", {"query": "a", "dataset": "x"})
    with pytest.raises(DataError, match=r"own\.jsonl line 1: column dataset: in a mix(.|\n)*dataset=row_dataset"):
        load(own, maths(tmp_path))


def test_evaluation_rows_are_taken_out_of_each_dataset_by_its_share(tmp_path: Path) -> None:
    data = load(maths(tmp_path, weight=0.75), code(tmp_path, weight=0.25), evaluation_rows=4)
    assert origins(data.evaluation) == {"maths": 3, "code": 1}
    assert origins(data.train) == {"maths": 3, "code": 5}
    assert all(sample.id.startswith("evaluation-") for sample in data.evaluation)
    assert data.columns == {"dataset", "solution", "tests"}
    assert all(sample.columns.keys() == data.columns for sample in data.evaluation)
    assert not +Counter(data.dropped)
    assert data.warnings == ()


def test_without_weights_a_dataset_counts_by_its_rows(tmp_path: Path) -> None:
    data = load(maths(tmp_path, 9), code(tmp_path, 3), evaluation_rows=4)
    assert origins(data.evaluation) == {"maths": 3, "code": 1}
    assert [each.weight for each in data.sets] == [6, 2]


def test_a_dataset_that_makes_its_rows_makes_its_share_of_evaluation_rows(tmp_path: Path) -> None:
    made = sums(rows=6).model_copy(update={"name": "sums"})
    data = load(made, maths(tmp_path), evaluation_rows=4)
    assert origins(data.evaluation) == {"sums": 2, "maths": 2}
    assert [sample.columns["a"] for sample in data.evaluation[:2]] == [1000, 1001]
    assert origins(data.train) == {"sums": 6, "maths": 4}


def test_a_prompt_of_the_evaluation_is_in_no_dataset_of_the_training(tmp_path: Path) -> None:
    held_out = part(tmp_path, "test", {"query": "m1", "solution": "1"}, {"query": "c2", "tests": []})
    data = load(maths(tmp_path), code(tmp_path), evaluation=held_out)
    assert origins(data.train) == {"maths": 5, "code": 5}
    assert origins(data.evaluation) == {"test": 2}
    assert sum(data.dropped.values()) == 2


def test_a_dataset_of_which_nothing_is_left_is_an_error(tmp_path: Path) -> None:
    held_out = part(tmp_path, "test", {"query": "c0", "tests": []})
    with pytest.raises(DataError, match=r"code\.jsonl: no training row is left, all 1 have an evaluation prompt"):
        load(maths(tmp_path), code(tmp_path, 1), evaluation=held_out)


def test_rows_left_out_are_counted_for_each_dataset(tmp_path: Path) -> None:
    other = part(tmp_path, "other", {"query": "b"}, {"x": 1}, preprocess=component("upper"))
    data = load(maths(tmp_path), other)
    assert +Counter(data.dropped) == {"other: the preprocessor dropped them": 1}

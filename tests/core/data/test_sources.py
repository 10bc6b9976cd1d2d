"""Rows from files, hubs and plugins, and the subset that a reference asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.data.sources import read_rows, without_sampling
from grpo_core.errors import DataError, PluginError, UsageError
from grpo_core.recipe.plan import PlannedDataset
from tests.core.data.fakes import HERE, sums, write_rows


def numbers(reference: str, seed: int = 0, limit: int | None = None) -> list[object]:
    dataset = PlannedDataset(reference=reference)
    return [row.columns["n"] for row in read_rows(dataset, split="train", seed=seed, limit=limit)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", [{"n": n} for n in range(20)])


def test_a_reference_without_a_number_gives_all_rows(file: Path) -> None:
    assert numbers(str(file)) == list(range(20))
    assert numbers(str(file), limit=3) == [0, 1, 2]


def test_sampled_rows_keep_their_order_and_their_position_in_the_whole(file: Path) -> None:
    rows = read_rows(PlannedDataset(reference=f"{file}#5"), split="train", seed=0)
    assert len(rows) == 5
    assert [row.index for row in rows] == [row.columns["n"] for row in rows] == sorted(row.index for row in rows)


def test_the_same_seed_samples_the_same_rows_and_a_larger_sample_holds_a_smaller_one(file: Path) -> None:
    assert numbers(f"{file}#5") == numbers(f"{file}#5")
    assert numbers(f"{file}#5", seed=1) != numbers(f"{file}#5", seed=0)
    assert set(numbers(f"{file}#5")) < set(numbers(f"{file}#9"))
    assert numbers(f"{file}#20", seed=7) == list(range(20))


def test_asking_for_more_rows_than_there_are_names_their_number(file: Path) -> None:
    with pytest.raises(DataError, match=r"21 rows are asked for, and there are 20(.|\n)*at most 20"):
        numbers(f"{file}#21")
    with pytest.raises(DataError, match="6 rows are asked for, and there are 5"):
        numbers(f"{file}#5", limit=6)


def test_a_detail_that_a_file_does_not_have_is_an_error(file: Path) -> None:
    with pytest.raises(UsageError, match="unknown detail 'spilt'"):
        numbers(f"{file}?spilt=train")
    for key in ("subset", "split"):
        with pytest.raises(DataError, match=f"is a file, which has no {key}"):
            numbers(f"{file}?{key}=train")


def test_the_subsets_of_a_folder_are_the_folders_in_it(tmp_path: Path) -> None:
    for subset, start in (("main", 0), ("hard", 100)):
        (tmp_path / subset).mkdir()
        write_rows(tmp_path / subset / "train-0.jsonl", [{"n": start}])
        write_rows(tmp_path / subset / "test.jsonl", [{"n": start + 1}])
    assert numbers(f"{tmp_path}?subset=hard") == [100]
    assert numbers(f"{tmp_path}?subset=main&split=test") == [1]
    with pytest.raises(DataError, match=r"has no subset 'esay'(.|\n)*there are: hard, main"):
        numbers(f"{tmp_path}?subset=esay")
    with pytest.raises(DataError, match=r"has no subset '\.\.'"):
        numbers(f"{tmp_path}/main?subset=..")


def test_a_source_makes_the_rows_of_each_split_with_options_and_seed() -> None:
    rows = read_rows(sums(rows=3), split="train", seed=7)
    assert [dict(row.columns) for row in rows] == [{"a": 0, "b": 7}, {"a": 1, "b": 7}, {"a": 2, "b": 7}]
    assert [row.place for row in rows] == ["sums train row 1", "sums train row 2", "sums train row 3"]
    rows = read_rows(sums(rows=3), split="evaluation", seed=7, limit=2)
    assert [row.columns["a"] for row in rows] == [1000, 1001]


def test_a_source_gives_the_first_rows_because_it_drew_them_already() -> None:
    assert [row.columns["a"] for row in read_rows(sums("acme/sums#2"), split="train", seed=0)] == [0, 1]
    assert [row.columns["a"] for row in read_rows(sums("acme/sums#2"), split="evaluation", seed=0)] == [1000, 1001]
    with pytest.raises(DataError, match="9 rows are asked for, and there are 8") as caught:
        read_rows(sums("acme/sums#9", rows=8), split="train", seed=0)
    assert caught.value.hint == "Ask for at most 8, or have more made: --set dataset.options.rows=9."
    with pytest.raises(DataError) as caught:
        read_rows(sums("acme/sums#9", rows=8).model_copy(update={"name": "mine"}), split="train", seed=0)
    assert "--set dataset.mix.mine.options.rows=9" in str(caught.value.hint)


def test_an_endless_evaluation_source_must_be_told_how_many_rows() -> None:
    with pytest.raises(DataError, match=r"none were(.|\n)*dataset\.evaluation_rows"):
        read_rows(sums(), split="evaluation", seed=0)


def test_a_source_that_fails_or_is_no_function_is_the_plugins_fault() -> None:
    with pytest.raises(
        PluginError, match=r"make_rows' failed to make rows: ZeroDivisionError: no more sums \(.*fakes.py"
    ):
        read_rows(sums(fail_at=2), split="train", seed=0)
    with pytest.raises(PluginError, match=r"make_rows' failed to make rows: it calls sys.exit\(0\) \(.*fakes.py"):
        read_rows(sums(leave_at=2), split="train", seed=0)
    with pytest.raises(PluginError, match="must be a function; it is 3"):
        read_rows(sums(source="not_callable"), split="train", seed=0)


def test_a_source_without_options_gets_none() -> None:
    dataset = PlannedDataset(reference="acme/bare", source=f"{HERE.with_name('test_sources.py')}:bare_rows")
    assert [dict(row.columns) for row in read_rows(dataset, split="train", seed=3)] == [{"options": None, "seed": 3}]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("no_rows", r"acme/bare: its source '.*:no_rows' made no row for the split 'train'"),
        ("none_rows", r"'.*:none_rows' gave None, not rows"),
        ("text_rows", r"row 2 of '.*:text_rows' has 'a' as columns, not a mapping"),
    ],
)
def test_a_source_that_gives_no_rows_is_told_so(source: str, told: str) -> None:
    dataset = PlannedDataset(reference="acme/bare", source=f"{HERE.with_name('test_sources.py')}:{source}")
    with pytest.raises((DataError, PluginError), match=told):
        read_rows(dataset, split="train", seed=3)


def no_rows(options: object, *, split: str, seed: int) -> list[object]:
    return []


def none_rows(options: object, *, split: str, seed: int) -> None:
    return None


def text_rows(options: object, *, split: str, seed: int) -> list[object]:
    return [{}, "a"]


def bare_rows(options: object, *, split: str, seed: int) -> list[dict[str, object]]:
    return [{"options": options, "seed": seed}]


def test_sampling_can_be_taken_off_a_reference() -> None:
    assert without_sampling(sums("acme/sums#500")).reference == "acme/sums"
    assert without_sampling(sums("acme/sums")).reference == "acme/sums"

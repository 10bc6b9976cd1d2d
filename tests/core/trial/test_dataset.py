"""Some rows of a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import pytest

from grpo_core.cli.common import load_plugins
from grpo_core.cli.rewards_settings import reward_settings
from grpo_core.errors import UsageError
from grpo_core.trial.dataset import SomeRows, some_rows


@pytest.fixture
def rows(tmp_path: Path) -> str:
    file = tmp_path / "rows.jsonl"
    lines = [f'{{"query": "{number}?", "solution": {number}}}\n' for number in range(10)]
    file.write_text("".join(lines), encoding="utf-8")
    return str(file)


def some(count: int, **flags: Any) -> SomeRows:
    return some_rows(reward_settings("format_reward", None, **flags), count, catalog=load_plugins().catalog)


def test_rows_are_spread_over_the_dataset(rows: str) -> None:
    taken = some(4, dataset=rows)
    assert [sample.columns["solution"] for sample in taken.samples] == [0, 2, 5, 7]
    assert (taken.total, taken.columns) == (10, {"solution"})


def test_no_more_rows_than_there_are(rows: str) -> None:
    assert len(some(99, dataset=rows).samples) == 10


def test_columns_are_renamed_and_a_system_prompt_is_in_the_messages(rows: str) -> None:
    taken = some(1, dataset=rows, columns=["solution=gold"], system="Be brief.")
    assert taken.columns == {"gold"}
    assert taken.samples[0].messages[0].content == "Be brief."


def test_of_a_stream_the_first_rows_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme" / "rows").mkdir(parents=True)
    lines = [f'{{"query": "{number}?", "solution": {number}}}\n' for number in range(10)]
    (tmp_path / "acme" / "rows" / "train.jsonl").write_text("".join(lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    assert len(some(4, dataset="hf:acme/rows?streaming=true").samples) == 4


def test_several_datasets_are_too_many(rows: str) -> None:
    with pytest.raises(UsageError) as caught:
        some(1, dataset=f"{rows},countdown")
    assert str(caught.value) == "2 datasets are named\n  Audit on one at a time."

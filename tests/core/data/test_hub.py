"""Hugging Face datasets, read by the real library from a folder that looks like a repository."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import datasets
import pytest

from grpo_core.data.hub import read_hub
from grpo_core.errors import DataError


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture
def repository(tmp_path: Path, cache: None) -> Path:
    (tmp_path / "train.jsonl").write_text('{"question": "a", "nums": [1, 2]}\n{"question": "b", "nums": [3]}\n')
    (tmp_path / "test.jsonl").write_text('{"question": "c", "nums": []}\n')
    return tmp_path


def test_training_reads_the_training_split(repository: Path) -> None:
    rows = read_hub(str(repository), subset=None, split=None, purpose="train")
    assert [dict(row.columns) for row in rows] == [{"question": "a", "nums": [1, 2]}, {"question": "b", "nums": [3]}]
    assert rows[1].index == 1
    assert rows[1].place.endswith("train row 2")


def test_a_named_split_is_read(repository: Path) -> None:
    rows = read_hub(str(repository), subset=None, split="test", purpose="evaluation")
    assert [row.columns["question"] for row in rows] == ["c"]


def test_a_missing_split_or_subset_names_what_there_is(repository: Path) -> None:
    with pytest.raises(DataError, match="there is no split 'dev'; it has train, test"):
        read_hub(str(repository), subset=None, split="dev", purpose="train")
    with pytest.raises(DataError, match=r"cannot be loaded: BuilderConfig 'main' not found. Available: \['default'\]"):
        read_hub(str(repository), subset="main", split=None, purpose="train")


def test_images_stay_encoded(tmp_path: Path, cache: None) -> None:
    cells = {"image": [{"bytes": b"png", "path": None}], "problem": ["what?"]}
    datasets.Dataset.from_dict(cells).cast_column("image", datasets.Image()).to_parquet(tmp_path / "train.parquet")
    rows = read_hub(str(tmp_path), subset=None, split=None, purpose="train")
    assert rows[0].columns == {"image": {"bytes": b"png", "path": None}, "problem": "what?"}


def test_a_dataset_that_cannot_be_reached_says_what_to_check(cache: None) -> None:
    with pytest.raises(DataError, match=r"hf:nobody/nothing: cannot be loaded: (.|\n)*\?subset=, the network"):
        read_hub("nobody/nothing", subset=None, split=None, purpose="train")

"""ModelScope datasets: what its client downloads is read like Hugging Face's; the client is stood in for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import datasets
import pytest

from grpo_core.data.sources import read_rows
from grpo_core.errors import DataError
from grpo_core.recipe.plan import PlannedDataset


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


def install_client(monkeypatch: pytest.MonkeyPatch, download: Callable[[str], str]) -> None:
    """What `from modelscope import dataset_snapshot_download` finds; its name and signature are those of 1.40."""
    module = ModuleType("modelscope")
    module.dataset_snapshot_download = download  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "modelscope", module)


def test_the_downloaded_files_are_read_with_subsets_and_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "README.md").write_text(
        "---\nconfigs:\n- config_name: main\n  data_files:\n"
        "  - {split: train, path: main/a.jsonl}\n  - {split: test, path: main/b.jsonl}\n---\n"
    )
    (tmp_path / "main").mkdir()
    (tmp_path / "main/a.jsonl").write_text('{"nums": [1, 2]}\n{"nums": [3]}\n')
    (tmp_path / "main/b.jsonl").write_text('{"nums": []}\n')
    asked: list[str] = []

    def download(dataset_id: str) -> str:
        asked.append(dataset_id)
        return str(tmp_path)

    install_client(monkeypatch, download)
    rows = read_rows(PlannedDataset(reference="ms:owner/name?subset=main#1"), split="train", seed=0)
    assert asked == ["owner/name"]
    assert rows[0].columns in ({"nums": [1, 2]}, {"nums": [3]})
    test = read_rows(PlannedDataset(reference="ms:owner/name?split=test"), split="train", seed=0)
    assert [(dict(row.columns), row.place) for row in test] == [({"nums": []}, "ms:owner/name test row 1")]
    with pytest.raises(DataError, match="ms:owner/name: there is no split 'dev'; it has train, test"):
        read_rows(PlannedDataset(reference="ms:owner/name?split=dev"), split="train", seed=0)


def test_what_the_client_cannot_download_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def download(dataset_id: str) -> str:
        raise ConnectionError("no route\nto host")

    install_client(monkeypatch, download)
    with pytest.raises(DataError, match=r"ms:owner/name: cannot be downloaded: no route(.|\n)*the network"):
        read_rows(PlannedDataset(reference="ms:owner/name"), split="train", seed=0)

"""The three datasets by name, by hub id and from files with the same columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import datasets
import pytest

from grpo_core.api import BuildContext
from grpo_core.cli.common import load_plugins
from grpo_core.data.hub import read_hub
from grpo_core.data.samples import SampleMaker, load_samples
from grpo_core.errors import DataError
from grpo_core.recipe.datasets import plan_dataset
from grpo_core.recipe.plan import PlannedDataset
from grpo_core.recipe.schema import MixedDataset
from tests.plugins.grpo_datasets_vision.hub_rows import clevr_rows, geoqa_rows, open_r1_rows, write_parquet
from tests.vl_models import encoded_picture

HUB_IDS = {
    "clevr_count": "leonardPKU/clevr_cogen_a_train",
    "geoqa": "leonardPKU/GEOQA_R1V_Train_8K",
    "open_r1_multimodal": "lmms-lab/multimodal-open-r1-8k-verified",
}
ROWS = {"clevr_count": clevr_rows, "geoqa": geoqa_rows, "open_r1_multimodal": open_r1_rows}


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


def planned(use: str, base: Path | None = None, **settings: object) -> PlannedDataset:
    entry = MixedDataset.model_validate({"use": use, **settings})
    return plan_dataset(entry, catalog=load_plugins(warn=False).catalog, base=base)


@pytest.mark.parametrize("name", ["geoqa", "open_r1_multimodal"])
def test_a_name_means_the_rows_of_its_hub_id(name: str) -> None:
    plan = planned(f"{name}#50")
    assert plan.reference == f"hf:{HUB_IDS[name]}#50"
    assert plan.preprocess is not None
    assert plan.preprocess.name == f"grpo-datasets-vision/{name}"


@pytest.mark.parametrize(("name", "hub_id"), HUB_IDS.items())
def test_rows_of_the_hub_id_are_read_by_the_dataset(name: str, hub_id: str) -> None:
    plan = planned(f"hf:{hub_id}?split=train")
    assert plan.preprocess is not None
    assert plan.preprocess.name == f"grpo-datasets-vision/{name}"
    assert plan.source is None


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("clevr_count", "AI-ModelScope/clevr_cogen_a_train"),
        ("geoqa", "AI-ModelScope/GEOQA_R1V_Train_8K"),
        ("open_r1_multimodal", "lmms-lab/multimodal-open-r1-8k-verified"),
    ],
)
def test_rows_of_the_modelscope_id_are_read_by_the_dataset(name: str, id_: str) -> None:
    entry = load_plugins(warn=False).catalog.for_hub_id(id_)
    assert entry is not None
    assert entry.spec.name == name


@pytest.mark.parametrize(("name", "rows"), ROWS.items())
def test_what_the_library_reads_of_the_hub_becomes_the_same_samples_as_the_file(
    name: str, rows: Callable[[int], list[dict[str, object]]], tmp_path: Path, cache: None
) -> None:
    file = write_parquet(tmp_path / "data" / "train-00000-of-00001.parquet", rows(3))
    plan = planned(f"{name}?path={file}")
    local = load_samples(plan, split="train", seed=0, context=BuildContext())
    read = read_hub(str(tmp_path), subset=None, split=None, purpose="train")
    assert SampleMaker(plan, "train", BuildContext())(read).samples == local.samples
    assert [len(sample.images) for sample in local.samples] == [1, 1, 1]
    assert "solution" in local.columns
    assert not {"image", "problem"} & local.columns


def test_some_rows_of_a_file_are_drawn(tmp_path: Path) -> None:
    write_parquet(tmp_path / "file.parquet", geoqa_rows(30))
    loaded = load_samples(
        planned("geoqa?path=./file.parquet#20", tmp_path), split="train", seed=0, context=BuildContext()
    )
    assert len(loaded.samples) == 20


def test_lines_of_json_name_their_images_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "0.png").write_bytes(encoded_picture(0))
    row = {"image": "images/0.png", "problem": "What is angle ABC?", "solution": "<answer> 45° </answer>"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    [sample] = load_samples(
        planned("geoqa?path=rows.jsonl", tmp_path), split="train", seed=0, context=BuildContext()
    ).samples
    assert [image.source for image in sample.images] == [str(tmp_path / "images" / "0.png")]


def test_a_folder_of_images_with_metadata_is_read(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "0.png").write_bytes(encoded_picture(0))
    row = {"file_name": "0.png", "problem": "What is angle ABC?", "solution": "<answer> 45° </answer>"}
    (tmp_path / "folder" / "metadata.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    plan = planned("geoqa?path=./folder", tmp_path)
    [sample] = load_samples(plan, split="train", seed=0, context=BuildContext()).samples
    assert [image.source for image in sample.images] == [str(tmp_path / "folder" / "0.png")]
    assert sample.columns == {"solution": row["solution"]}


def test_the_documents_own_form_of_a_row_is_read_by_each_dataset(tmp_path: Path) -> None:
    for seed, name in enumerate(("a.png", "b.png")):
        (tmp_path / name).write_bytes(encoded_picture(seed))
    row = {
        "images": ["a.png", "b.png"],
        "messages": [
            {"role": "user", "content": "How many items are there in the images?"},
            {"role": "assistant", "content": "<answer> 3 </answer>"},
        ],
        "solution": "<answer> 3 </answer>",
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    for name in HUB_IDS:
        plan = planned(f"{name}?path=rows.jsonl", tmp_path)
        [sample] = load_samples(plan, split="train", seed=0, context=BuildContext()).samples
        assert [message.role for message in sample.messages] == ["user"]
        assert sample.messages[0].content.startswith("<image><image>How many items")
        assert len(sample.images) == 2
        assert sample.columns["solution"] == "<answer> 3 </answer>"


def test_a_row_of_a_file_without_its_image_is_named(tmp_path: Path) -> None:
    rows = geoqa_rows(3)
    rows[1]["image"] = None
    write_parquet(tmp_path / "file.parquet", rows)
    with pytest.raises(DataError, match=r"file.parquet row 2: column image: the row has no image"):
        load_samples(planned("geoqa?path=file.parquet", tmp_path), split="train", seed=0, context=BuildContext())
    kept = planned("geoqa?path=file.parquet", tmp_path, options={"without_image": "drop"})
    loaded = load_samples(kept, split="train", seed=0, context=BuildContext())
    assert len(loaded.samples) == 2
    assert loaded.dropped == {"the preprocessor dropped them": 1}

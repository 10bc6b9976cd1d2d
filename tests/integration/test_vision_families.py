"""A geometry file of twenty rows made by hand trains with each family of vision-language models."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import torch
import transformers
from safetensors.torch import load_file

from tests.integration.runs import REWARD, completions_of, grpoctl, metrics_of
from tests.tiny_models import make_model_folder
from tests.vl_models import VL_FAMILIES, VlFamily, encoded_picture, make_vl_folder

WANTED = ("--dataset", "geoqa?path=./file.parquet", "--model", "./model")


def make_file(file: Path, rows: int = 20) -> None:
    """With the columns that the hub's rows have, and nothing that only the library writes."""
    made = [
        {
            "image": {"bytes": encoded_picture(row, (48 + 8 * (row % 3), 64)), "path": None},
            "problem": f"In triangle ABC angle A is {row + 20} degrees. What is angle B?",
            "solution": f"<answer> {160 - row} </answer>",
            "wanted": row % 2,
        }
        for row in range(rows)
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(made), file)


@pytest.mark.parametrize("family", VL_FAMILIES)
def test_a_geometry_file_made_by_hand_trains(family: VlFamily, tmp_path: Path) -> None:
    before = load_file(make_vl_folder(family, tmp_path / "model") / "model.safetensors")
    make_file(tmp_path / "file.parquet")
    (tmp_path / "mine.py").write_text(REWARD, encoding="utf-8")  # a random model is right about no angle
    grpoctl(
        tmp_path,
        *("train", *WANTED, "--rewards", "multimodal_accuracy,format_reward,./mine.py:vowels", "--output", "run"),
        *("--steps", "2", "--prompts-per-step", "2", "--completions-per-prompt", "3", "--max-completion-tokens", "8"),
        *("--learning-rate", "1e-2", "--set", "rollout.max_gap_nats=0.001"),
    )
    assert [row["step"] for row in metrics_of(tmp_path / "run") if row["step"]] == [1, 2]
    assert len(completions_of(tmp_path / "run")) == 12
    after = load_file(tmp_path / "run" / "final" / "model.safetensors")
    assert before.keys() == after.keys()
    tower = [name for name in before if "visual." in name or "vision_model." in name]
    moved = [name for name in tower if not torch.equal(before[name], after[name])]
    assert len(moved) > len(tower) / 2
    made = transformers.AutoConfig.from_pretrained(tmp_path / "run" / "final")
    assert made.model_type == family
    assert (tmp_path / "run" / "final" / "preprocessor_config.json").is_file()


def test_the_rewards_of_the_published_runs_are_bound_and_score_every_completion(tmp_path: Path) -> None:
    make_vl_folder("qwen2_vl", tmp_path / "model")
    make_file(tmp_path / "file.parquet")
    grpoctl(
        tmp_path,
        *("train", *WANTED, "--rewards", "multimodal_accuracy,format_reward", "--output", "run"),
        *("--steps", "1", "--prompts-per-step", "2", "--completions-per-prompt", "2", "--max-completion-tokens", "4"),
    )
    row = next(row for row in metrics_of(tmp_path / "run") if row["step"] == 1)
    assert row["rewards/multimodal_accuracy/coverage"] == 1.0
    assert row["rewards/multimodal_accuracy/mean"] == 0.0


def test_a_package_that_a_family_needs_and_lacks_is_named_at_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformers.models.smolvlm.processing_smolvlm.num2words", None)  # what a failed import leaves
    make_vl_folder("smolvlm", tmp_path / "model")
    make_file(tmp_path / "file.parquet")
    said = grpoctl(tmp_path, "train", *WANTED, "--rewards", "format_reward", "--output", "run", code=2).stderr
    assert "its processor needs the package num2words: pip install num2words" in said
    assert not (tmp_path / "run").exists()


BAD_ROWS = {
    "missing": ({"image": "gone.png"}, "rows.jsonl line 1: the image 'gone.png' cannot be read: No such file"),
    "broken": ({"image": "broken.png"}, "broken.png' is broken, or no picture"),
    "another kind": ({"image": 5}, "rows.jsonl line 1: column image: 5 is not an image"),
    "placeholders": (
        {"image": "0.png", "problem": "<image> or <image>?"},
        "rows.jsonl line 1: the prompt has 2 <image>, but the row has 1 image",
    ),
}


@pytest.fixture
def no_model_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a model is loaded")

    for name in ("AutoModelForImageTextToText", "AutoModelForCausalLM"):
        monkeypatch.setattr(getattr(transformers, name), "from_pretrained", refuse)


@pytest.mark.usefixtures("no_model_loads")
@pytest.mark.parametrize("kind", BAD_ROWS)
def test_a_bad_row_is_told_before_a_model_loads(kind: str, tmp_path: Path) -> None:
    make_vl_folder("qwen2_vl", tmp_path / "model")
    (tmp_path / "0.png").write_bytes(encoded_picture(0))
    (tmp_path / "broken.png").write_bytes(encoded_picture(0)[:20])
    columns, message = BAD_ROWS[kind]
    row = {"problem": "How many?", "solution": "3", **columns}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    data = ("--dataset", "geoqa?path=rows.jsonl", "--rewards", "multimodal_accuracy")
    assert message in grpoctl(tmp_path, "train", "--model", "./model", *data, "--output", "run", code=2).stderr


@pytest.mark.usefixtures("no_model_loads")
def test_a_model_that_reads_text_only_gets_no_images(tmp_path: Path) -> None:
    make_model_folder(tmp_path / "model")
    make_file(tmp_path / "file.parquet")
    short = ("--rewards", "multimodal_accuracy", "--max-completion-tokens", "8")
    said = grpoctl(tmp_path, "train", *WANTED, *short, "--output", "run", code=2).stderr
    assert "and the model reads text only" in said

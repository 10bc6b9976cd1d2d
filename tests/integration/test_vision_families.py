"""A geometry file of twenty rows made by hand trains with each family of vision-language models."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import torch
import transformers
from safetensors.torch import load_file

from tests.integration.runs import REWARD, completions_of, grpoctl, metrics_of
from tests.vl_models import VL_FAMILIES, VlFamily, encoded_picture, make_vl_folder

ISSUED = ("--dataset", "geoqa?path=./file.parquet", "--model", "./model")


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
        *("train", *ISSUED, "--rewards", "multimodal_accuracy,format_reward,./mine.py:vowels", "--output", "run"),
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
        *("train", *ISSUED, "--rewards", "multimodal_accuracy,format_reward", "--output", "run"),
        *("--steps", "1", "--prompts-per-step", "2", "--completions-per-prompt", "2", "--max-completion-tokens", "4"),
    )
    row = next(row for row in metrics_of(tmp_path / "run") if row["step"] == 1)
    assert row["rewards/multimodal_accuracy/coverage"] == 1.0
    assert row["rewards/multimodal_accuracy/mean"] == 0.0

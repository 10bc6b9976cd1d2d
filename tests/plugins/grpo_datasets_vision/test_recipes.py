"""The published runs: their settings, and three steps of each on rows of the hub's schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import grpo_datasets_vision
from grpo_datasets_vision.options import ClevrCountOptions
from tests.integration.runs import completions_of, grpoctl, metrics_of
from tests.plugins.grpo_datasets_vision.hub_rows import clevr_rows, geoqa_rows, open_r1_rows, write_parquet
from tests.vl_models import make_vl_folder

RUNS: dict[str, tuple[str, Callable[[int], list[dict[str, object]]], int]] = {
    "clevr-count": ("clevr_count", clevr_rows, 4),
    "geoqa": ("geoqa", geoqa_rows, 12),
    "open-r1-multimodal": ("open_r1_multimodal", open_r1_rows, 12),
}
"""Recipe -> its dataset, what makes such rows, and the prompts of a step."""
EMBEDDED = ("--rollout", "transformers", "--trainer", "torch", "--set", "trainer.options={}")
"""Core's own engines, where vLLM and DeepSpeed are not installed."""

_SYSTEM = (Path(grpo_datasets_vision.__file__).parent / "recipes" / "reason-then-answer.txt").read_text("utf-8")
_TEXTS = (
    _SYSTEM,
    ClevrCountOptions().instruction,
    *(str(make_rows(1)[0]["problem"]) for _, make_rows, _ in RUNS.values()),
)
WORDS = sorted({f" {word}" for text in _TEXTS for word in text.split()})
"""Of the prompts, which are five times as many tokens otherwise."""

SHARED = {
    "model.path": "Qwen/Qwen2.5-VL-3B-Instruct",
    "rollout.max_completion_tokens": 1024,
    "rollout.temperature": 1.0,
    "objective.loss": "grpo",
    "objective.beta": 0.001,
    "trainer.learning_rate": 1e-6,
    "trainer.precision": "bf16",
    "run.completions_per_step": 96,
    "run.epochs": 1.0,
    "run.save_total_limit": 10,
}
PUZZLES = {
    "rollout.completions_per_prompt": 8,
    "rollout.repetition_penalty": 1.1,
    "trainer.num_iterations": 2,
    "trainer.max_grad_norm": 0.5,
    "trainer.warmup_share": 0.05,
    "run.save_steps": 200,
    "evaluation.every_steps": 200,
}
"""Every 400 updates is every 200 steps of two updates."""
SETTINGS: dict[str, dict[str, object]] = {
    "clevr-count": {
        "dataset.use": "hf:leonardPKU/clevr_cogen_a_train",
        "rollout.completions_per_prompt": 24,
        "trainer.num_iterations": 1,
        "trainer.warmup_share": 0.01,
        "run.save_steps": 1000,
        "evaluation.every_steps": 1000,
    },
    "geoqa": {**PUZZLES, "dataset.use": "hf:leonardPKU/GEOQA_R1V_Train_8K", "model.max_pixels": 401408},
    "open-r1-multimodal": {
        **PUZZLES,
        "dataset.use": "hf:lmms-lab/multimodal-open-r1-8k-verified",
        "model.max_pixels": 262144,
    },
}


@pytest.mark.parametrize("recipe", RUNS)
def test_a_recipe_has_the_published_settings(recipe: str, tmp_path: Path) -> None:
    told = json.loads(grpoctl(tmp_path, "recipe", "explain", recipe, "--json", *EMBEDDED).stdout)
    wanted = {**SHARED, **SETTINGS[recipe]}
    assert {name: told[name]["value"] for name in wanted} == wanted


@pytest.mark.parametrize("recipe", RUNS)
def test_a_recipe_is_sound(recipe: str, tmp_path: Path) -> None:
    said = grpoctl(tmp_path, "recipe", "check", recipe, *EMBEDDED).stdout
    assert f"{recipe} is sound: {RUNS[recipe][2]} prompts × " in said
    assert "rewards multimodal_accuracy, format_reward" in said


@pytest.mark.parametrize(
    "recipe",
    ["clevr-count", *(pytest.param(name, marks=pytest.mark.slow) for name in ("geoqa", "open-r1-multimodal"))],
)
def test_three_steps_run_on_rows_of_the_hubs_schema(recipe: str, tmp_path: Path) -> None:
    """With another model, other rows and shorter texts, and the engines that are here."""
    dataset, make_rows, prompts = RUNS[recipe]
    make_vl_folder("qwen2_5_vl", tmp_path / "model", words=WORDS, num_hidden_layers=1)
    write_parquet(tmp_path / "rows.parquet", make_rows(3 * prompts + 2))
    grpoctl(
        tmp_path,
        *("train", "--recipe", recipe, "--output", "run", "--model", "./model", *EMBEDDED),
        *("--dataset", f"{dataset}?path=rows.parquet", "--eval-rows", "2", "--max-completion-tokens", "6"),
    )
    rows = [row for row in metrics_of(tmp_path / "run") if row["step"]]
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert max(float(str(row["sampler/gap_mean"])) for row in rows) < 0.05  # bf16 on both sides
    completions = completions_of(tmp_path / "run")
    assert len(completions) == 3 * 96
    assert {"multimodal_accuracy", "format_reward"} <= set(json.dumps(completions[0]).replace('"', " ").split())
    plan = json.loads((tmp_path / "run" / "plan.json").read_text(encoding="utf-8"))
    assert "The reasoning process and answer are enclosed within <think>" in json.dumps(plan)

"""The model card: what the plan and the records say, and nothing else."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import yaml

from grpo_core.loop.card import Measured, model_card
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.recipe.resolve import resolve
from grpo_core.types import EvaluationReport
from tests.core.recipe.fakes import fake_host, recipe_of

BEFORE = EvaluationReport(step=0, metrics={"eval/prompts": 50.0, "eval/accuracy": 0.125})
AFTER = EvaluationReport(step=40, metrics={"eval/prompts": 50.0, "eval/accuracy": 0.5, "eval/pass@4": 0.75})


def plan(**settings: Any) -> LaunchPlan:
    settings = {"model": "acme/small-1b", "rewards": [{"use": "brevity", "weight": 0.5}, "timed"], **settings}
    made = resolve(recipe_of(**settings), {}, host=fake_host())
    return made.model_copy(update={"command": "grpoctl train --recipe 'my recipe.yaml'"})


def measured(**known: Any) -> Measured:
    rows: list[dict[str, object]] = [
        {"step": step, "reward/mean": step / 40, "rewards/brevity/mean": 0.5, "rewards/timed/mean": None}
        for step in range(1, 41)
    ]
    return Measured(**{"step": 40, "before": BEFORE, "after": AFTER, "rows": rows, **known})


def card(known: Measured | None = None, **settings: Any) -> str:
    return model_card(plan(**settings), Path("runs/countdown-1"), known or measured())


def test_the_head_is_yaml_that_names_the_base_model_and_the_data() -> None:
    text = card(dataset="hf:acme/sums?split=train#500")
    head = yaml.safe_load(text.split("---\n")[1])
    assert head["base_model"] == "acme/small-1b"
    assert head["datasets"] == ["acme/sums"]
    assert head["library_name"] == "transformers"
    assert text.split("---\n")[2].startswith("\n# countdown-1\n")


def test_local_models_and_data_are_named_without_their_folders(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.touch()
    text = card(model=str(tmp_path / "my-model"), dataset=str(rows))
    assert "base_model" not in text
    assert "`my-model`, trained with GRPO on `rows.jsonl` for 40 steps" in text
    assert str(tmp_path) not in text


def test_results_are_those_measured_before_and_after() -> None:
    text = card()
    assert "On 50 held-out prompts" in text
    assert "| | before training | after 40 steps |" in text
    assert "| `eval/accuracy` | 0.125 | 0.500 |" in text
    assert "| `eval/pass@4` | not measured | 0.750 |" in text


def test_what_was_not_evaluated_is_said_to_be_so() -> None:
    text = card(measured(before=None, after=None))
    assert "These weights were not evaluated on held-out prompts." in text
    assert "eval/" not in text


def test_training_rewards_are_means_of_both_ends() -> None:
    text = card()
    assert "| | first 10 steps | last 10 steps |" in text
    assert "| `reward/mean` | 0.138 | 0.887 |" in text
    assert "| `rewards/timed/mean` | none applied | none applied |" in text


def test_one_step_is_no_steps() -> None:
    rows = [{"step": step, "reward/mean": 0.5, "health/collapse": float(step == 2)} for step in (1, 2)]
    text = card(measured(rows=rows))
    assert "| | first step | last step |" in text
    assert "a collapse in 1 step, first in step 2" in text


def test_a_run_of_one_step_has_no_ends() -> None:
    assert "first" not in card(measured(rows=[{"step": 0}, {"step": 1, "reward/mean": 0.5}]))


def test_a_collapse_is_not_hidden() -> None:
    rows = [{"step": step, "health/collapse": float(step > 30)} for step in range(1, 41)]
    assert "The run warned of a collapse in 10 steps, first in step 31." in card(measured(rows=rows))
    assert "collapse" not in card()


def test_rewards_have_their_weights_and_origin() -> None:
    text = card()
    assert "| `brevity` | 0.5 | acme 1.2 |" in text
    assert "| `timed` | 1 | acme 1.2 |" in text


def test_settings_versions_and_command_are_there() -> None:
    text = card(trainer={"learning_rate": 5e-7, "max_grad_norm": None}, objective={"beta": 0.001})
    assert "| learning rate | 5e-07, constant |" in text
    assert "| KL | beta 0.001 |" in text
    assert "| largest gradient norm | not limited |" in text
    assert f"torch {importlib.metadata.version('torch')}" in text
    assert "acme 1.2, grpo-core" in text
    assert "```console\n$ grpoctl train --recipe 'my recipe.yaml'\n```" in text


def test_without_a_command_there_is_no_such_section() -> None:
    bare = plan().model_copy(update={"command": ""})
    assert "## Command" not in model_card(bare, Path("runs/a"), measured())


def test_the_best_model_says_by_what_it_was_chosen() -> None:
    assert "this one has the best `eval/accuracy`" in card(measured(chosen_by="eval/accuracy"))


def test_an_adapter_is_named_as_one() -> None:
    lora: dict[str, Any] = {"lora": {"rank": 8, "merge": False}}
    text = card(trainer=lora)
    assert "The weights here are a LoRA adapter of that model." in text
    assert "| LoRA | rank 8" in text
    lora["lora"]["merge"] = True
    assert "LoRA adapter of that model" not in card(trainer=lora)

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from grpo_core.cli.main import build_app
from grpo_core.errors import RecipeError, UnknownComponent

_RECIPE = """\
model: acme/tiny
dataset: countdown#50
rewards:
  - countdown_reward
  - {use: format, weight: 0.5}
trainer:
  learning_rate: 1e-5
run: {steps: 3}
"""


@pytest.fixture(autouse=True)
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRPO_DISABLE_PLUGINS", raising=False)
    (tmp_path / "r.yaml").write_text(_RECIPE)
    return tmp_path / "r.yaml"


def _recipe(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["recipe", *arguments])


def _explained(*arguments: str) -> dict[str, Any]:
    done = _recipe("explain", *arguments, "--json")
    assert done.exit_code == 0, done.exception
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_recipes_are_listed_with_their_plugin() -> None:
    done = _recipe("list")
    assert done.exit_code == 0
    shown = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert any(
        line.startswith("countdown-qwen2.5-3b grpo-rewards-math Countdown with Qwen2.5-3B-Instruct") for line in shown
    )


def test_recipes_are_listed_as_json() -> None:
    listed = {each["name"]: each for each in json.loads(_recipe("list", "--json").stdout)}
    assert listed["countdown-qwen2.5-3b"]["plugin"] == "grpo-rewards-math"


def test_a_recipe_is_shown_as_it_is_written() -> None:
    done = _recipe("show", "countdown-qwen2.5-3b")
    assert done.stdout.startswith("# Countdown with Qwen2.5-3B-Instruct")
    assert "recipes/countdown-qwen2.5-3b.yaml" in done.stderr


def test_a_recipe_that_needs_its_folder_says_so_in_the_copy() -> None:
    done = _recipe("show", "countdown-tiny")
    assert done.stdout.startswith("# Relative paths in this recipe start at its own folder: a copy elsewhere does not")
    assert "begins with `extends: countdown-tiny` and" in done.stdout
    Path("mine.yaml").write_text("extends: countdown-tiny\nrun: {steps: 2}\n", encoding="utf-8")
    assert _recipe("check", "mine.yaml").exit_code == 0


def test_a_sound_recipe_is_said_to_be_sound() -> None:
    done = _recipe("check", "r.yaml")
    assert done.exit_code == 0, done.exception
    assert done.stdout == (
        "r.yaml is sound: 8 prompts × 8 completions a step, rewards countdown_reward, format_reward\n"
    )


def test_a_combination_without_meaning_is_warned_of() -> None:
    done = _recipe("check", "r.yaml", "--set", "objective={loss: cispo, clip_high: 0.2}")
    assert done.exit_code == 0, done.exception
    assert "warning: clip_high 0.2 with loss cispo" in done.stderr


def test_every_problem_of_a_recipe_is_reported_with_its_line(recipe: Path) -> None:
    recipe.write_text(_RECIPE.replace("learning_rate", "learning_rte").replace("use: format", "use: frmat"))
    error = _recipe("check", "r.yaml").exception
    assert isinstance(error, RecipeError)
    first, second = map(str, error.problems)
    assert first == "trainer.learning_rte: unknown key; did you mean 'learning_rate'? (r.yaml:7)"
    assert second.startswith("rewards.frmat.use: no plugin registers a reward 'frmat'.")
    assert second.endswith("(r.yaml:5)")


def test_each_value_is_explained_by_who_set_it() -> None:
    told = _explained("r.yaml", "--steps", "5", "--set", "rewards.format.weight=2", "--beta", "1e-3")
    assert told["trainer.learning_rate"] == {"value": 1e-5, "origin": "r.yaml:7"}
    assert told["run.steps"] == {"value": 5, "origin": "--steps"}
    assert told["rewards.format.weight"] == {"value": 2.0, "origin": "--set"}
    assert told["objective.beta"] == {"value": 1e-3, "origin": "--beta"}
    assert told["rollout.top_p"] == {"value": 1.0, "origin": "default"}
    assert told["dataset.options.max_numbers"] == {"value": 4, "origin": "default"}


def test_a_table_is_for_people() -> None:
    lines = _recipe("explain", "r.yaml").stdout.splitlines()
    assert lines[0].split() == ["setting", "value", "origin"]
    assert any(line.split() == ["trainer.learning_rate", "1e-05", "r.yaml:7"] for line in lines)


def test_set_wins_over_flags_and_flags_over_the_file() -> None:
    flags = ("--learning-rate", "2e-5", "--set", "trainer.learning_rate=3e-5")
    assert _explained("r.yaml", *flags)["trainer.learning_rate"] == {"value": 3e-5, "origin": "--set"}
    assert _explained("r.yaml", *flags[:2])["trainer.learning_rate"] == {"value": 2e-5, "origin": "--learning-rate"}


def test_blanks_around_reward_names_do_not_matter() -> None:
    told = _explained("r.yaml", "--rewards", " countdown_reward ,format_reward ", "--reward-weights", "1.0, 0.5")
    assert told["rewards.countdown_reward.weight"] == {"value": 1.0, "origin": "--reward-weights"}
    assert told["rewards.format_reward.use"] == {"value": "format_reward", "origin": "--rewards"}
    assert "rewards.format.weight" not in told


def test_one_group_may_be_a_step() -> None:
    flags = ("--completions-per-step", "8", "--completions-per-prompt", "8")
    assert "r.yaml is sound: 1 prompts × 8 completions a step" in _recipe("check", "r.yaml", *flags).stdout


def test_columns_and_a_system_prompt_come_from_flags(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("Think first.")
    told = _explained("r.yaml", "--columns", "a = b", "--columns", "c=d", "--system", "s.txt", "--output", "out")
    assert told["dataset.columns.a"] == {"value": "b", "origin": "--columns"}
    assert told["dataset.columns.c"]["value"] == "d"
    assert told["dataset.system"] == {"value": "Think first.", "origin": "--system"}
    assert told["run.directory"] == {"value": "out", "origin": "--output"}


def test_a_recipe_may_extend_one_that_a_plugin_ships(recipe: Path) -> None:
    recipe.write_text("extends: countdown-qwen2.5-3b\nrun: {steps: 3}\n")
    told = _explained("r.yaml")
    assert told["run.steps"] == {"value": 3, "origin": "r.yaml:2"}
    assert told["run.epochs"] == {"value": None, "origin": "default"}
    assert told["objective.loss"]["origin"].startswith("countdown-qwen2.5-3b.yaml:")


def test_the_published_settings_of_countdown_are_those_of_its_recipe() -> None:
    told = {path: each["value"] for path, each in _explained("countdown-qwen2.5-3b").items()}
    published = {
        "model.path": "Qwen/Qwen2.5-3B-Instruct",
        "dataset.use": "hf:Jiayi-Pan/Countdown-Tasks-3to4#50000",
        "rollout.completions_per_prompt": 8,
        "rollout.max_completion_tokens": 1024,
        "rollout.temperature": 1.0,
        "run.completions_per_step": 128,
        "run.epochs": 1.0,
        "run.save_steps": 100,
        "run.save_total_limit": 20,
        "trainer.learning_rate": 5e-7,
        "trainer.warmup_share": 0.01,
        "trainer.num_iterations": 1,
        "trainer.precision": "bf16",
        "objective.beta": 0.001,
        "objective.loss": "grpo",
        "evaluation.every_steps": 500,
        "rewards.countdown_reward.weight": 1.0,
        "rewards.format_reward.weight": 1.0,
    }
    assert {path: told[path] for path in published} == published


@pytest.mark.parametrize("command", ["show", "check", "explain"])
def test_an_unknown_recipe_is_named_with_its_neighbours(command: str) -> None:
    error = _recipe(command, "countdown-qwen").exception
    assert isinstance(error, UnknownComponent)
    assert "countdown-qwen2.5-3b" in (error.hint or "")

"""Code that comes with a recipe, a run's folder or a model: looking at them runs none of it, and who starts one is told
before it runs. Every file of such code here leaves its name behind when it is imported."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from grpo_core.plugins.targets import file_module_name
from tests.integration.runs import grpoctl, make_workplace, train_arguments

CANARY = "import pathlib, sys\nprint('canary', pathlib.Path(__file__).stem, 'runs')\n"
PREPROCESSOR = f"""{CANARY}
from grpo_core.types import Message, Sample
def make(row):
    return Sample(messages=(Message(role="user", content=row["query"]),), columns={{"wanted": row["wanted"]}})
"""
REWARD = f"{CANARY}\ndef near(completions, **rest):\n    return [len(text) / 100 for text in completions]\n"
MODEL = f"{CANARY}\nfrom transformers import Qwen3Config\nclass OtherConfig(Qwen3Config):\n    model_type = 'other'\n"
RECIPE = """
model: {path: ./other, trust_remote_code: true}
dataset: {use: rows.jsonl, preprocess: ./code_of_data.py:make}
rewards: [format_reward, ./code_of_reward.py:near]
run: {steps: 1, prompts_per_step: 3}
rollout: {completions_per_prompt: 4, max_completion_tokens: 8}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe, a run with a checkpoint whose plan names foreign code, and a model with code of its own."""
    folder = make_workplace(tmp_path_factory.mktemp("place"))
    grpoctl(folder, *train_arguments("run", "--steps", "1", "--save-steps", "1"))
    shutil.rmtree(folder / "run" / "final")
    shutil.copytree(folder / "model", folder / "other")
    config = json.loads((folder / "other" / "config.json").read_text(encoding="utf-8"))
    config |= {"model_type": "other", "auto_map": {"AutoConfig": "configuration_other.OtherConfig"}}
    (folder / "other" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for name, source in (
        ("code_of_reward.py", REWARD),
        ("code_of_data.py", PREPROCESSOR),
        ("code_of_run.py", REWARD),
        ("other/configuration_other.py", MODEL),
    ):
        (folder / name).write_text(source, encoding="utf-8")
    (folder / "r.yaml").write_text(RECIPE, encoding="utf-8")
    plan = (folder / "run" / "plan.json").read_text(encoding="utf-8").replace("mine.py:vowels", "code_of_run.py:near")
    (folder / "run" / "plan.json").write_text(plan, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        *("recipe list", "recipe show countdown-tiny", "recipe check r.yaml", "recipe explain r.yaml", "report run"),
        *("plugins list", "plugins doctor grpo-core", "plugins show format_reward", "rewards list", "datasets list"),
        *("datasets preview rows.jsonl", "datasets preview rows.jsonl --model ./other"),
    ],
)
def test_looking_runs_no_code_that_comes_with_data(place: Path, command: str) -> None:
    ran = grpoctl(place, *command.split())
    assert "canary" not in ran.stdout + ran.stderr


def test_a_recipe_that_is_looked_at_lists_its_code(place: Path) -> None:
    assert grpoctl(place, "recipe", "check", "r.yaml").stdout.splitlines()[1:] == [
        "code: ./code_of_reward.py: reward near (r.yaml:4)",
        "code: ./code_of_data.py: the preprocessor of the dataset (r.yaml:3)",
        "code: the Python files of ./other (configuration_other.py): the model and its tokenizer (r.yaml:2)",
    ]


@pytest.mark.parametrize("more", [("train", "--dry-run"), ("eval",)])
def test_a_run_lists_code_before_any_of_it_runs(
    place: Path, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(place / "modules"))
    ran = grpoctl(place, more[0], "--recipe", "r.yaml", "--output", "new", *more[1:], code=None)
    listed = ran.stderr if more[0] == "eval" else ran.stdout
    code = [line for line in listed.splitlines() if line.startswith("code: ")]
    assert [line.rpartition(": ")[2] for line in code] == [
        "reward near (r.yaml:4)",
        "the preprocessor of the dataset (r.yaml:3)",
        "the model and its tokenizer (r.yaml:2)",
    ]
    if more[0] == "train":
        assert "canary" not in ran.stdout.partition("the model and its tokenizer")[0]


def test_code_of_a_foreign_plan_is_listed_before_it_runs(place: Path) -> None:
    line = "code: ./code_of_run.py: reward {} (the run's plan.json)"
    for command in (("rewards", "rescore", "run"), ("eval", "run", "--eval-rows", "2")):
        ran = grpoctl(place, *command, "--json")
        assert line.format("near") in ran.stderr.splitlines()
        json.loads(ran.stdout.replace("canary code_of_run runs\n", ""))
    sys.modules.pop(file_module_name(place / "code_of_run.py"))
    ran = grpoctl(place, "resume", "run")
    assert ran.stdout.splitlines()[:2] == [line.format("vowels"), "canary code_of_run runs"]

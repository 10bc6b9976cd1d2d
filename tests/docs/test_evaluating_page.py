"""The commands of docs/evaluating.md are taken by the command line, and what they name is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.integration.runs import grpoctl, make_workplace, train_arguments

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "evaluating.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with checkpoints at every step, under the names of the page."""
    folder = make_workplace(tmp_path_factory.mktemp("place"))
    reward = "def my_reward(completions):\n    return [float('a' in text) for text in completions]\n"
    (folder / "mine.py").write_text(reward, encoding="utf-8")
    (folder / "test.jsonl").write_text('{"query": "Say 100"}\n{"query": "Say 101"}\n', encoding="utf-8")
    (folder / "my.yaml").write_text(
        "model: ./model\ndataset: ./rows.jsonl\nrewards: [./mine.py:my_reward]\nrollout: {max_completion_tokens: 4}\n",
        encoding="utf-8",
    )
    settings = ("--eval-rows", "2", "--save-steps", "1", "--rewards", "./mine.py:my_reward")
    grpoctl(folder, *train_arguments("runs/mine", *settings))
    (folder / "runs/mine/checkpoints/step-000001").rename(folder / "runs/mine/checkpoints/step-000150")
    return folder


def commands() -> list[str]:
    lines = re.findall(r"^\$ grpoctl (eval [^#\n]*)", PAGE, flags=re.MULTILINE)
    return [line.strip() for line in lines if "Qwen" not in line]


@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_page_prints_the_metrics_of_an_evaluation(place: Path, command: str) -> None:
    arguments = shlex.split(command)
    if "--recipe" not in arguments and "--model" in arguments:
        arguments += ["--max-completion-tokens", "4"]
    printed = grpoctl(place, *arguments).stdout
    assert "eval/reward_mean" in printed
    assert ("eval/accuracy" in printed) == ("evaluation.success=my_reward" in command)


def test_every_metric_of_the_page_is_documented() -> None:
    documented = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    for name in re.findall(r"`(eval/\w+)`", PAGE):
        assert f"`{name}`" in documented

"""`grpoctl rewards try`: one prompt, some completions, and what the reward says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.errors import BrokenReference, GrpoError, RecipeError, RewardError, UnknownComponent, UsageError
from tests.core.cli.rewards.running import error, facts, rewards
from tests.core.trial.making import REWARDS


def test_try_shows_the_score_and_what_the_reward_was_called_with() -> None:
    shown = rewards(
        "try",
        "countdown_reward",
        *("--completion", "<answer>3 + 4</answer>", "--row", "nums=[3, 4]", "--row", '{"target": 7, "level": 1}'),
    ).stdout.splitlines()
    assert shown[0].startswith("countdown_reward (grpo-rewards-math ")
    assert shown[1] == "  score       1"
    assert "              nums = [[3, 4]]  (column nums)" in shown
    assert "  not read    level" in shown
    assert "  ran         in this process" in shown
    assert any(line.startswith("  time        ") for line in shown)


def test_try_as_json_has_everything(rows: str) -> None:
    found = facts("try", f"{REWARDS}:everything", "--completion", "ab", "--completion", "\ud7ff", "--row", rows)
    assert found["scores"] == [0.5, 0.5]
    assert found["failures"] == [None, None]
    assert found["records"] == {"letters": [2, 1]}
    assert found["arguments"]["solution"] == {"column": "solution", "value": [6, 6]}
    assert found["arguments"]["prompts"] == {"column": None, "value": ["Six times 1?", "Six times 1?"]}
    assert found["where"] == "in this process"
    assert found["claimed"] is True


def test_try_takes_a_completion_from_a_file_or_from_stdin(tmp_path: Path) -> None:
    (tmp_path / "said.txt").write_text("<think>a</think><answer>b</answer>", encoding="utf-8")
    (tmp_path / "prompt.txt").write_text("assistant: <think>", encoding="utf-8")
    file, prompt = f"@{tmp_path}/said.txt", f"@{tmp_path}/prompt.txt"
    assert facts("try", "format_reward", "--completion", file)["scores"] == [1.0]
    assert facts("try", "format_reward", "--completion", file, "--prompt", prompt)["scores"] == [0.0]
    assert (
        "score       1"
        in rewards("try", "format", "--completion", "-", stdin="<think>a</think><answer></answer>").stdout
    )


def test_try_says_none_and_failed_and_that_tokens_are_stand_ins() -> None:
    shown = rewards("try", f"{REWARDS}:boxed", "--completion", "x", "--row", '{"solution": null}').stdout
    assert "score       does not apply (None)" in shown
    shown = rewards("try", f"{REWARDS}:empty_is_an_error", "--completion", "", "--row", "solution=1", code=4).stdout
    assert "score       failed: raised ZeroDivisionError" in shown
    shown = rewards("try", f"{REWARDS}:tokens", "--completion", "a b", "--completion", "a").stdout
    assert "score 2     1" in shown
    assert "token ids are stand-ins" in shown


def test_try_passes_a_reward_by_whose_task_is_another(plugin: str) -> None:
    shown = rewards("try", "agrees", "--plugin", plugin, "--completion", "yes", "--row", "task=maths").stdout
    assert "score       does not apply (None)" in shown
    assert "it is meant for polls, and the row's task is another" in shown


def test_try_takes_options_and_records_by_the_settings_of_a_run(plugin: str) -> None:
    no = ("--completion", "no", "--plugin", plugin)
    assert facts("try", "consents", *no)["scores"] == [0.0]
    found = facts("try", "consents", *no, "--set", 'rewards.consents.options.answer="no"')
    assert found["scores"] == [1.0]
    assert found["where"] == "in a killable worker, 2.5 s an answer"
    shown = rewards("try", f"{REWARDS}:everything", "--completion", "abc").stdout
    assert "  recorded    letters = [3]" in shown


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (["try", "mth_reward", "--completion", "a"], UnknownComponent, "no plugin registers a reward 'mth_reward'"),
        (["try", "./nowhere.py:f", "--completion", "a"], BrokenReference, "nowhere.py"),
        (["try", "./mine.py", "--completion", "a"], UsageError, "cannot be a reward"),
        (["try", "format,repetition", "--completion", "a"], UsageError, "names 2 rewards"),
        (
            ["try", "format", "--completion", "@/no/file"],
            UsageError,
            "--completion '@/no/file': the file cannot be read",
        ),
        (["try", "format", "--completion", "a", "--row", "x"], UsageError, "--row x: is neither JSON"),
        (["try", f"{REWARDS}:exact", "--completion", "a"], RewardError, "its parameter 'solution' is neither"),
        (["try", f"{REWARDS}:not_a_function", "--completion", "a"], RewardError, "not a function"),
        (
            ["try", "repetition", "--completion", "a", "--set", "rewards.repetition.options.ngram=2"],
            RecipeError,
            "rewards.repetition.options.ngram: unknown option",
        ),
        (["try", "format", "--completion", "a", "--set", "rewards.fromat.weight=2"], RecipeError, "is named 'fromat'"),
    ],
)
def test_what_try_cannot_do_is_said(arguments: list[str], kind: type[GrpoError], words: str) -> None:
    assert words in error(kind, *arguments)


def test_a_file_that_is_no_text_is_no_completion(tmp_path: Path) -> None:
    (tmp_path / "image.png").write_bytes(b"\x89PNG")
    assert "it is not UTF-8 text" in error(UsageError, "try", "format", "--completion", f"@{tmp_path}/image.png")

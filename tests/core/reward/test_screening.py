"""Rows that a reward cannot judge are found before a model loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from grpo_core.errors import RewardError
from grpo_core.reward.check import BoundReward, check_rewards
from grpo_core.reward.screening import ASKED_ROWS, screen_rows
from grpo_core.types import BuildContext, Sample
from tests.core.reward.making import planned, sample


class NeedsTests:
    """Judges rows with tests, and remembers which it was asked about."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, object]] = []

    def __call__(self, completions: list[str], tests: list[object] | None = None) -> list[float | None]:
        return [None if tests is None or tests[place] is None else 1.0 for place in range(len(completions))]

    def unjudgeable(self, columns: Mapping[str, object]) -> str | None:
        self.asked.append(columns)
        if columns.get("tests") == "odd":
            raise OSError("no such tool")
        return None if columns.get("tests") else "it has\n  no tests"


needs_tests = NeedsTests()


def bound(there: Sequence[str] = ("tests",), **changes: object) -> tuple[BoundReward, ...]:
    return check_rewards([planned(f"{__file__}:needs_tests", **changes)], there, BuildContext())


def asked(rewards: Sequence[BoundReward]) -> list[Mapping[str, object]]:
    """What it was asked since the last time; the reward is one of a module of its own."""
    found: Any = rewards[0].function
    asked = list(found.asked)
    found.asked.clear()
    return asked


def rows(*tests: object) -> list[Sample]:
    return [sample({"tests": each}, id=f"train-{place}") for place, each in enumerate(tests)]


def test_rows_with_all_they_need_are_said_nothing_of() -> None:
    assert screen_rows(bound(), {"training": rows("a", "b"), "evaluation": []}) == ()


def test_some_rows_that_cannot_be_judged_are_counted_with_the_first() -> None:
    assert screen_rows(bound(), {"training": rows("a", None, "b", None), "evaluation": rows(None)}) == (
        "reward 'needs_tests' cannot judge 2 of 4 training rows: it has no tests; the first is train-1: "
        '{"prompt": "1+1?"}',
        "reward 'needs_tests' cannot judge any of 1 evaluation rows: it has no tests; the first is train-0: "
        '{"prompt": "1+1?"}',
    )


def test_a_reward_that_can_judge_no_row_does_not_start() -> None:
    answers = [sample({"answer": 4}, id="train-7")]
    with pytest.raises(RewardError) as caught:
        screen_rows(bound(["answer"]), {"training": answers, "evaluation": []})
    assert caught.value.message == (
        "reward 'needs_tests' cannot judge any of 1 training rows: it has no tests; the first is train-7: "
        '{"prompt": "1+1?", "answer": 4}'
    )


def test_rows_of_other_tasks_are_not_asked_about() -> None:
    others = [sample({"task": "math"}), sample({"task": "code", "tests": "a"})]
    rewards = bound(tasks=("code",))
    asked(rewards)
    assert screen_rows(rewards, {"training": others, "evaluation": others[:1]}) == ()
    assert asked(rewards) == [{"tests": "a"}]
    assert screen_rows(rewards, {"training": others[:1]}) == ()


def test_columns_come_by_the_names_of_the_parameters() -> None:
    rewards = bound(["cases"], columns={"tests": "cases"})
    asked(rewards)
    screen_rows(rewards, {"training": [sample({"cases": "a"})]})
    assert asked(rewards) == [{"tests": "a"}]


def test_of_many_rows_some_are_asked_about_that_are_spread_evenly() -> None:
    many = rows(*range(1, 10 * ASKED_ROWS + 1))
    rewards = bound()
    asked(rewards)
    screen_rows(rewards, {"training": many})
    assert [each["tests"] for each in asked(rewards)] == list(range(1, 10 * ASKED_ROWS + 1, 10))


def test_a_reward_that_fails_when_asked_is_quoted() -> None:
    (warning,) = screen_rows(bound(), {"training": rows("odd", "a")})
    assert "cannot judge 1 of 2 training rows: its unjudgeable() fails: OSError: no such tool" in warning


def test_a_plain_function_is_not_asked() -> None:
    assert screen_rows(check_rewards([planned("length")], [], BuildContext()), {"training": rows(None)}) == ()

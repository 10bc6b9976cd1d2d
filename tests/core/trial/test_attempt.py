"""One reward on completions that a person gives."""

from __future__ import annotations

from typing import Any

import pytest

from grpo_core.errors import RewardError
from grpo_core.trial.attempt import Attempt, attempt
from grpo_core.types import Failed, Sample
from tests.core.trial.making import CONTEXT, SETTINGS, planned, samples


def tried(attribute: str, row: dict[str, object], *texts: str, **changes: Any) -> Attempt:
    sample: Sample = samples(row)[0]
    return attempt(
        planned(attribute, **changes), sample, texts, prompt="user: 6*7?", settings=SETTINGS, context=CONTEXT
    )


def test_scores_arguments_and_columns_that_are_not_read_are_told() -> None:
    found = tried("exact", {"gold": 42, "level": 1}, "<answer>42</answer>", "42", columns={"solution": "gold"})
    assert found.outcomes == (1.0, 0.0)
    assert {each.parameter: (each.column, each.value) for each in found.arguments} == {
        "completions": (None, ["<answer>42</answer>", "42"]),
        "solution": ("gold", [42, 42]),
    }
    assert found.unread == ("level",)
    assert found.place == "in this process"
    assert found.start_s >= 0
    assert found.score_s >= 0


def test_what_is_recorded_is_told_and_kwargs_get_everything() -> None:
    found = tried("everything", {"level": 1}, "ab")
    assert found.records == {"letters": (2,)}
    assert {"level", "prompts", "step"} <= {each.parameter for each in found.arguments}


def test_a_failure_has_its_reason() -> None:
    (outcome,) = tried("empty_is_an_error", {"solution": 1}, "").outcomes
    assert isinstance(outcome, Failed)


def test_a_row_of_another_task_is_not_scored() -> None:
    found = tried("exact", {"solution": 1, "task": "code"}, "1", tasks=("math",))
    assert (found.claimed, found.arguments, found.outcomes) == (False, (), (None,))


def test_a_column_that_is_not_there_is_an_error_before_anything_is_scored() -> None:
    with pytest.raises(RewardError, match="its parameter 'solution' is neither a dataset column nor"):
        tried("exact", {"gold": 1}, "1")


def test_in_a_worker_it_scores_the_same_and_says_where() -> None:
    found = tried("sandboxed", {}, "x", runs_in="worker")
    assert found.outcomes == (0.5,)
    assert found.place == "in a killable worker; a box of its own"

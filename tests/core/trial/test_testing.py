"""Cases run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from grpo_core.errors import DataError, GrpoError, PluginError, RewardError
from grpo_core.recipe.plan import PlannedReward
from grpo_core.trial.cases import Case
from grpo_core.trial.testing import Verdict, run_cases
from grpo_core.types import Failed
from tests.core.reward.making import planned as planned_target
from tests.core.trial.making import CONTEXT, SETTINGS, planned


def case(text: str | tuple[str, ...], expected: Any, columns: Mapping[str, object] | None = None, **more: Any) -> Case:
    texts = (text,) if isinstance(text, str) else text
    wanted = expected if isinstance(expected, tuple) else (expected,) * len(texts)
    return Case(place="cases.jsonl line 1", texts=texts, expected=wanted, columns=columns or {}, **more)


def run(attribute: str, *cases: Case, **changes: Any) -> list[bool]:
    verdicts = run_cases(lambda _: planned(attribute, **changes), cases, settings=SETTINGS, context=CONTEXT)
    return [verdict.passed for verdict in verdicts]


def test_each_completion_is_judged_in_order() -> None:
    cases = [
        case(("<answer>1</answer>", "1"), (1.0, 0.0), {"solution": 1}),
        case("<answer>1</answer>", 0.0, {"solution": 1}),
    ]
    assert run("exact", *cases) == [True, True, False]


@pytest.mark.parametrize(
    ("outcome", "expected", "passed"),
    [
        (1.0, 1.0, True),
        (1.0 + 1e-7, 1.0, True),
        (1.0 + 1e-5, 1.0, False),
        (None, None, True),
        (0.0, None, False),
        (None, 0.0, False),
        (Failed("x"), "failed", True),
        (Failed("x"), 0.0, False),
        (Failed("x"), None, False),
        (0.0, "failed", False),
        (None, "failed", False),
    ],
)
def test_a_number_none_and_failed_are_three_things(outcome: Any, expected: Any, passed: bool) -> None:
    assert Verdict(case=case("a", expected), position=0, outcome=outcome).passed is passed


def test_the_tolerance_is_the_cases_own() -> None:
    assert Verdict(case=case("a", 1.0, tolerance=0.1), position=0, outcome=0.95).passed


def test_a_column_that_only_some_cases_have_is_none_in_the_others() -> None:
    assert run("boxed", case("\\boxed{1}", 1.0, {"solution": 1}), case("\\boxed{1}", None)) == [True, True]


def test_a_column_that_no_case_has_is_an_error() -> None:
    with pytest.raises(RewardError, match="its parameter 'solution' is neither"):
        run("exact", case("1", 1.0))


def test_a_reward_that_sees_a_whole_step_sees_one_case_at_a_time() -> None:
    cases = [case("a", 1.0, {"solution": 1}), case(("aaa", "b"), (1.0, 0.0), {"solution": 1})]
    assert run("group_rank", *cases, scope="step") == [True, True, True]
    assert run("group_rank", *cases, scope="group") == [True, True, True]


def test_each_case_may_have_options_of_its_own_and_its_own_tokens() -> None:
    def plan(options: Mapping[str, Any]) -> PlannedReward:
        return planned_target(
            "grpo_core.reward.builtin.repetition:make",
            options_model="grpo_core.reward.builtin.options:RepetitionOptions",
            options=dict(options),
        )

    ids = ((1, 2, 1, 2),)
    cases = [
        case("x", 0.0, completion_ids=ids),
        case("x", -1 / 3, completion_ids=ids, options={"ngram_size": 2}),
        case("x", 0.0, completion_ids=ids),
    ]
    verdicts = run_cases(plan, cases, settings=SETTINGS, context=CONTEXT)
    assert [verdict.passed for verdict in verdicts] == [True, True, True]


def test_wrong_options_of_a_case_name_the_case() -> None:
    def plan(options: Mapping[str, Any]) -> PlannedReward:
        raise PluginError("no such option", hint="Look again.")

    with pytest.raises(DataError) as caught:
        run_cases(plan, [case("x", 0.0, options={"a": 1})], settings=SETTINGS, context=CONTEXT)
    assert str(caught.value) == "cases.jsonl line 1: no such option\n  Look again."
    with pytest.raises(GrpoError) as other:
        run_cases(plan, [case("x", 0.0)], settings=SETTINGS, context=CONTEXT)
    assert other.value.message == "no such option"


def test_cases_run_in_workers_too() -> None:
    assert run("exact", case("<answer>1</answer>", 1.0, {"solution": 1}), runs_in="worker") == [True]

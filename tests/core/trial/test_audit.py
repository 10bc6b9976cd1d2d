"""Audits of sound and unsound rewards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from grpo_core.errors import DataError, UsageError
from grpo_core.trial.audit import Audit, Bounds, audit
from grpo_core.trial.reference import Reference
from grpo_core.types import Failed, Sample
from tests.core.trial.making import answers, samples, scorer

ROWS = answers(*(6 * number for number in range(1, 13)))


def audited(attribute: str, rows: Sequence[Sample] = ROWS, **more: Any) -> Audit:
    columns = sorted({name for row in rows for name in row.columns})
    changes = {name: more.pop(name) for name in ("tasks", "scope", "runs_in") if name in more}
    with scorer(attribute, columns, **changes) as made:
        return audit(made, rows, **more)


def failing(attribute: str, rows: Sequence[Sample] = ROWS, **more: Any) -> set[str]:
    return {finding.name for finding in audited(attribute, rows, **more).problems}


def test_a_sound_reward_passes_and_its_form_is_found() -> None:
    found = audited("boxed")
    assert found.problems == ()
    assert found.reference == Reference(column="solution", form="in \\boxed{}")
    assert (found.rows, found.unclaimed, found.skipped) == (12, 0, None)
    means = {each.name: each.mean for each in found.controls}
    assert means["the reference, in \\boxed{}"] == 1.0
    assert means["the reference, bare"] == 0.0
    assert means["another row's reference"] == 0.0


def test_one_that_pays_for_saying_everything_is_found_with_an_example() -> None:
    found = audited("contains")
    everything = {"all answers in one", "all answers, one by one"}
    assert {each.name for each in found.problems} == everything | {
        "a digit too many in front",
        "a digit too many behind",
        "the reference in the thinking only",
    }
    problem = next(each for each in found.problems if each.name == "all answers in one")
    assert problem.problem == "it is no answer and scores 1, more than 0.1"
    assert problem.example is not None
    assert problem.example.completion == "12, 18, 24, 30, 36, 42, 6, 48, 54, 60, 66, 72"


def test_one_that_pays_everything_fails_everything_it_should_refuse() -> None:
    found = audited("always")
    refused = {each.name for each in found.controls if each.judged == "refuses"}
    assert {each.name for each in found.problems} == refused | {"tells completions apart"}


def test_one_that_pays_nothing_does_not_pay_the_right_answer() -> None:
    found = audited("never")
    assert {each.name for each in found.problems} == {"the reference, bare", "tells completions apart"}
    assert [each.problem for each in found.problems] == [
        "a right answer scores 0, less than 0.9",
        "every control gets the same score, 0: there is nothing to learn",
    ]


def test_one_that_applies_to_nothing_is_found() -> None:
    problems = [each.problem for each in audited("no_opinion").problems]
    assert problems == [
        "it does not apply to any right answer",
        "every control gets no score: there is nothing to learn",
    ]


def test_one_that_fails_on_a_control_is_found_with_its_reason() -> None:
    found = audited("empty_is_an_error", runs_in="worker")
    assert [each.name for each in found.problems] == ["nothing"]
    problem = found.problems[0]
    assert problem.problem == "its score failed on 12 of 12"
    assert problem.example is not None
    assert isinstance(problem.example.outcome, Failed)


def test_a_checker_of_which_the_answer_is_in_another_column_is_understood() -> None:
    rows = samples(*({"nums": [a, 9], "target": a + 9, "solution": f"{a}+9"} for a in range(8)))
    found = audited("equation", rows)
    assert found.reference == Reference(column="solution", form="bare")
    assert found.problems == ()


def test_a_reward_that_gets_no_column_is_shown_and_not_judged() -> None:
    found = audited("length")
    assert found.problems == ()
    assert found.reference is None
    assert found.skipped == "it reads no column of the data, so it cannot know the right answer"
    assert next(each.mean for each in found.controls if each.name == "the prompt") == 4.0


def test_data_without_a_right_answer_is_said_and_the_rest_is_judged() -> None:
    rows = samples({"solution": {"no": "text"}}, {"solution": {"no": "answer"}})
    found = audited("always", rows)
    assert found.skipped == "no column looks like the right answer; --reference-column names one"
    assert "nothing" in {each.name for each in found.problems}


def test_what_is_only_read_and_never_paid_is_no_right_answer() -> None:
    rows = samples({"tests": "[3]"}, {"tests": "[4]"})
    found = audited("reads_tests", rows)
    assert found.reference is None
    assert found.skipped is not None
    assert found.skipped.startswith("the rows hold none")
    assert found.problems == ()
    apart = next(each for each in found.ways if each.name == "tells completions apart")
    assert apart.count == 0
    named = audited("reads_tests", rows, reference_column="tests")
    assert {each.name for each in named.problems} == {"the reference, bare", "tells completions apart"}


def test_the_column_can_be_named() -> None:
    rows = samples(*({"solution": number, "wrong": number + 1} for number in range(8)))
    assert audited("boxed", rows, reference_column="solution").problems == ()
    assert "the reference, bare" in failing("boxed", rows, reference_column="wrong")
    with pytest.raises(UsageError) as caught:
        audited("boxed", rows, reference_column="solutoin")
    assert str(caught.value) == (
        "--reference-column solutoin: no row has a right answer in it\n  The dataset has solution, wrong."
    )


def test_the_bounds_can_be_those_of_another_scale() -> None:
    assert "the reference, in <answer>" in failing("exact", bounds=Bounds(high=1.5))
    assert failing("always", bounds=Bounds(low=1.0)) == {"tells completions apart"}


def test_rows_of_other_tasks_are_left_out() -> None:
    rows = samples(*({"solution": n, "task": "math" if n % 2 else "code"} for n in range(8)))
    found = audited("boxed", rows, tasks=("math",))
    assert (found.rows, found.unclaimed, found.problems) == (4, 4, ())
    with pytest.raises(DataError, match="is meant for the tasks chess, and no row has such a task"):
        audited("boxed", rows, tasks=("chess",))


def test_none_is_counted_and_is_not_pay() -> None:
    rows = [*ROWS, *answers(None)]
    nothing = next(each for each in audited("boxed", rows).controls if each.name == "nothing")
    assert (nothing.count, nothing.none, nothing.mean, nothing.problem) == (13, 1, 0.0, None)

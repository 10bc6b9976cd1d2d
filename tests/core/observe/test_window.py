from __future__ import annotations

import math
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from grpo_core.observe.window import Window, merge_steps, window_of
from grpo_core.types import EvaluationReport, RunStarted, StepReport
from tests.core.loop.make import scored_group

GROUPS = (scored_group([1.0]),)
NUMBERS = st.none() | st.floats(-1e6, 1e6)


def report(step: int, *, total: int = 100, evaluated: bool = False, **metrics: float | None) -> StepReport:
    return StepReport(
        step=step,
        total_steps=total,
        metrics={name.replace("__", "/"): value for name, value in metrics.items()},
        groups=GROUPS,
        advantages=((0.0,),),
        evaluation=EvaluationReport(step=step, metrics={"eval/accuracy": 0.5}) if evaluated else None,
    )


def window(*, every: int, show: int = 0, first: int = 1) -> Window:
    return Window(every_steps=every, show_every_steps=show, first_step=first)


def test_each_metric_is_merged_by_what_it_is() -> None:
    rows = [
        {
            "reward/mean": 1.0,
            "completions/length_max": 9.0,
            "x_min": 2.0,
            "epoch": 0.1,
            "health/collapse": 1.0,
            "a": None,
        },
        {"reward/mean": 2.0, "completions/length_max": 7.0, "x_min": 3.0, "epoch": 0.2, "health/collapse": 0.0},
        {"reward/mean": None, "completions/length_max": 8.0, "epoch": 0.3, "health/collapse": 0.0, "a": None},
    ]
    assert merge_steps(rows) == {
        "reward/mean": 1.5,
        "completions/length_max": 9.0,
        "x_min": 2.0,
        "epoch": 0.3,
        "health/collapse": 1.0,
        "a": None,
    }


@given(st.lists(st.fixed_dictionaries({"reward/mean": NUMBERS, "length_max": NUMBERS}), min_size=1, max_size=9))
def test_a_merged_value_lies_among_those_it_is_made_of(rows: list[dict[str, float | None]]) -> None:
    merged = merge_steps(rows)
    for name, value in merged.items():
        values = [row[name] for row in rows if row[name] is not None]
        assert (value is None) == (not values)
        if value is not None:
            low, high = min(values), max(values)  # type: ignore[type-var]
            assert low <= value <= high or math.isclose(value, low) or math.isclose(value, high)  # type: ignore[operator, arg-type]


def test_one_step_at_a_time_passes_unchanged() -> None:
    one = report(7, reward__mean=0.25)
    assert window(every=1, show=1, first=7).add(one) == one


def test_reports_come_every_so_many_steps_and_at_the_end() -> None:
    gathered = window(every=3)
    due = [gathered.add(report(step, total=8, reward__mean=float(step))) for step in range(1, 9)]
    assert [(one.step, one.metrics["reward/mean"]) for one in due if one] == [(3, 2.0), (6, 5.0), (8, 7.5)]


def test_an_evaluation_is_not_kept_waiting() -> None:
    gathered = window(every=10)
    assert gathered.add(report(1, reward__mean=1.0)) is None
    due = gathered.add(report(2, evaluated=True, reward__mean=3.0))
    assert due is not None
    assert due.evaluation is not None
    assert due.metrics["reward/mean"] == 2.0
    assert gathered.add(report(3, reward__mean=5.0)) is None


def test_completions_are_shown_with_the_first_report_that_is_due_after_a_multiple() -> None:
    gathered = window(every=3, show=4)
    due = [gathered.add(report(step)) for step in range(1, 16)]
    assert [(one.step, bool(one.groups)) for one in due if one] == [
        (3, False),
        (6, True),
        (9, True),
        (12, True),
        (15, False),
    ]


def test_after_a_resume_the_same_steps_show_completions() -> None:
    gathered = window(every=1, show=10, first=15)
    due = [gathered.add(report(step)) for step in range(15, 22)]
    assert [one.step for one in due if one and one.groups] == [20]


def test_the_settings_of_a_run_decide() -> None:
    run = {"logging_steps": 2, "show_completion_every_steps": 0}
    plan = {"recipe": {"run": run}}
    gathered = window_of(RunStarted(run_dir=Path("runs/a"), plan=plan, first_step=1, total_steps=9))
    assert gathered.add(report(1)) is None
    due = gathered.add(report(2))
    assert due is not None
    assert due.groups == ()

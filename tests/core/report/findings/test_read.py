"""All rules on one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.report.completions import StepSummary, summarise
from grpo_core.report.findings.read import accuracy_curve, findings_of, form_rewards, paid_without
from tests.core.report.making import learning_run, metric_rows, opened, plan_of, rising


def rules(run_dir: Path, *, plan: bool = True, **columns: list[float]) -> list[str]:
    files = {"plan": plan_of()} if plan else {}
    return [one.rule for one in findings_of(opened(run_dir, metric_rows(**columns), **files), ())]


def test_what_spoils_a_run_stands_first(tmp_path: Path) -> None:
    reward = [*rising(0.1, 0.6, 60), *rising(0.6, 0.0, 20), *[0.0] * 40]
    judged = [*[0.0] * 70, *[1.0] * 50]
    columns = {"reward__mean": reward, "health__collapse": judged, "completions__truncated_share": [0.5] * 120}
    found = rules(tmp_path / "run", **columns)
    assert found == ["collapse", "cut-off"]


def test_a_run_that_learns_is_read_as_such(tmp_path: Path) -> None:
    from grpo_core.report.run import open_run

    run = open_run(learning_run(tmp_path / "run"), "run")
    found = {one.rule: one for one in findings_of(run, summarise(run))}
    assert found.keys() == {"learning", "held-out", "length-grew", "failing"}
    assert found["learning"].text.startswith("sum_reward rose")


@pytest.mark.parametrize(
    ("totals", "text"),
    [
        ([0.5] * 5, "has 5 steps so far; whether"),
        ([None] * 5, "has 5 steps so far, and none has a score; whether"),
        ([0.5, *[None] * 4], "has 5 steps so far, and only 1 of them with a score; whether"),
    ],
)
def test_a_run_that_is_too_short_says_how_many_steps_it_has_and_how_many_are_scored(
    tmp_path: Path, totals: list[float | None], text: str
) -> None:
    run = opened(tmp_path / "run", metric_rows(reward__mean=totals, reward__no_total=[8.0] * 5))
    found = {one.rule: one for one in findings_of(run, ())}
    assert text in found["too-short"].text


def test_accuracy_is_the_reward_that_counts_as_success_else_the_one_that_verifies_else_the_total(
    tmp_path: Path,
) -> None:
    chosen = plan_of(evaluation={"success": "format_reward"})
    assert accuracy_curve(opened(tmp_path / "a", plan=chosen)) == ("format_reward", "rewards/format_reward/mean")
    assert accuracy_curve(opened(tmp_path / "b", plan=plan_of())) == ("sum_reward", "rewards/sum_reward/mean")
    unverified = plan_of(rewards=["format_reward"])
    assert accuracy_curve(opened(tmp_path / "c", plan=unverified)) == ("The total reward", "reward/mean")
    assert accuracy_curve(opened(tmp_path / "d")) == ("The total reward", "reward/mean")


def test_held_out_reward_stands_in_where_nothing_verifies(tmp_path: Path) -> None:
    columns = {"reward__mean": [0.5] * 30, "eval__reward_mean": [0.1, *[None] * 28, 0.9]}
    assert rules(tmp_path / "run", plan=False, **columns) == ["held-out"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("after", "prompts", "level"),
    [(0.219, 32.0, "note"), (0.0, 8.0, "note"), (0.6, 64.0, "good"), (0.0, 64.0, "warning")],
)
def test_a_change_on_held_out_prompts_counts_beyond_the_error_of_so_many(
    tmp_path: Path, after: float, prompts: float, level: str
) -> None:
    between = [None] * 28
    columns = {
        "eval__accuracy": [0.25, *between, after],
        "eval__prompts": [2 * prompts, *between, 2 * prompts],
        "eval__judged_share": [0.5, *between, 0.5],
    }
    run = opened(tmp_path / "run", metric_rows(reward__mean=[0.5] * 30, **columns))  # type: ignore[arg-type]
    assert [(found.rule, found.level) for found in findings_of(run, ()) if found.rule == "held-out"] == [
        ("held-out", level)
    ]


def test_a_change_of_the_held_out_reward_counts_beyond_its_error(tmp_path: Path) -> None:
    columns = {"eval__reward_mean": [0.1, *[None] * 28, 0.9], "eval__reward_se": [0.2, *[None] * 28, 0.2]}
    run = opened(tmp_path / "run", metric_rows(reward__mean=[0.5] * 30, **columns))  # type: ignore[arg-type]
    assert [found.level for found in findings_of(run, ())] == ["note"]


def test_a_short_run_says_so(tmp_path: Path) -> None:
    assert rules(tmp_path / "run", reward__mean=[0.1, 0.9]) == ["too-short"]


def test_a_value_that_is_no_number_is_found(tmp_path: Path) -> None:
    assert (
        rules(tmp_path / "run", reward__mean=[0.5] * 30, trainer__loss=[*[0.1] * 29, float("nan")])[0] == "not-finite"
    )


def test_form_is_known_by_its_name() -> None:
    assert form_rewards(["right", "format_reward", "react_format", "Format"]) == [
        *("format_reward", "react_format", "Format")
    ]


def test_the_share_paid_without_form_is_of_those_that_are_paid() -> None:
    def summary(step: int, paid: int, without: int) -> StepSummary:
        counts = {"paid": {"form": paid}, "paid_without": {"form": without}}
        return StepSummary(step=step, completions=9, groups=1, bytes=1, failed=0, quantiles={}, **counts)

    found = paid_without([summary(1, 4, 1), summary(2, 0, 0), summary(3, 2, 2)], "form")
    assert (found.steps, found.values) == ((1, 3), (0.25, 1.0))

"""Curves: whole for the findings, thinned for the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grpo_core.report.completions import summarise
from grpo_core.report.curves import MOST_POINTS, bad_values, curve, metric_names, page_curves, weighted
from tests.core.report.making import group_of, opened, plan_of


def test_a_curve_has_the_steps_at_which_there_is_a_finite_number(tmp_path: Path) -> None:
    values = [0.5, None, float("nan"), float("inf"), "text", True, 2]
    run = opened(tmp_path / "run", [{"step": at, "a": value} for at, value in enumerate(values)])
    found = curve(run, "a")
    assert (found.steps, found.values) == ((0, 6), (0.5, 2.0))
    assert bad_values(run) == [(2, "a"), (3, "a")]
    assert metric_names(run) == ["a"]


def test_a_short_run_is_drawn_point_by_point(tmp_path: Path) -> None:
    run = opened(tmp_path / "run", [{"step": 1, "a": 1.0}, {"step": 2, "a": None, "b": 0.123456789}])
    made = page_curves(run, ())
    assert made.json["curves"] == {
        "steps": [1, 2],
        "values": {"a": [1, None], "b": [None, 0.12346]},
        "quantiles": {},
    }
    assert made.text == ""


def test_a_long_run_has_a_mean_and_a_range_for_several_steps(tmp_path: Path) -> None:
    steps = 2 * MOST_POINTS
    run = opened(tmp_path / "run", [{"step": at + 1, "a": at % 2} for at in range(steps)])
    made = page_curves(run, ())
    drawn = made.json["curves"]
    assert (len(drawn["steps"]), drawn["steps"][:2], drawn["steps"][-1]) == (MOST_POINTS, [2, 4], steps)
    assert drawn["values"]["a"] == [0.5] * MOST_POINTS
    assert (drawn["low"]["a"][0], drawn["high"]["a"][0]) == (0, 1)
    assert made.text == "Each point of a curve stands for 2 steps: their mean, with their range behind it."


def test_evaluations_keep_their_exact_steps_however_long_the_run(tmp_path: Path) -> None:
    rows = [{"step": step, "a": 1.0} for step in range(1, 2 * MOST_POINTS)]
    rows[499]["eval/accuracy"] = 0.5
    run = opened(tmp_path / "run", [{"step": 0, "eval/accuracy": 0.25}, *rows])
    made = page_curves(run, ())
    assert made.json["evaluations"]["steps"] == [0, 500]
    assert made.json["evaluations"]["values"] == {"eval/accuracy": [0.25, 0.5]}
    assert made.json["curves"]["steps"][0] == 2


def test_quantiles_stand_beside_the_steps_that_have_completions(tmp_path: Path) -> None:
    rows = [{"step": 1, "reward/mean": 0.5}, {"step": 2, "reward/mean": 1.0}]
    run = opened(tmp_path / "run", rows, completions={2: group_of(2, 0, 2)})
    found = page_curves(run, summarise(run)).json["curves"]["quantiles"]
    assert found["reward/mean"] == [None, [0.2, 0.5, 1, 1.5, 1.8]]


def test_what_each_reward_puts_into_the_total_is_weight_times_mean_times_coverage(tmp_path: Path) -> None:
    row = {"step": 1, "rewards/sum_reward/mean": 0.5, "rewards/format_reward/mean": 1.0}
    row["rewards/sum_reward/coverage"] = 0.4
    run = opened(tmp_path / "run", [row], plan=plan_of())
    values = page_curves(run, ()).json["curves"]["values"]
    assert values["weighted/sum_reward"] == [pytest.approx(0.2)]
    assert values["weighted/format_reward"] == [0.5]


def test_there_is_no_such_sum_for_one_reward_or_for_a_mean(tmp_path: Path) -> None:
    assert weighted(opened(tmp_path / "one", plan=plan_of(rewards=["sum_reward"]))) == {}
    assert weighted(opened(tmp_path / "two", plan=plan_of(scoring={"reduce": "mean"}))) == {}
    assert weighted(opened(tmp_path / "three")) == {}


def test_the_curves_are_strict_json(tmp_path: Path) -> None:
    run = opened(tmp_path / "run", [{"step": 1, "a": float("nan"), "b": 1e300}, {"step": 2, "b": 5}])
    json.dumps(page_curves(run, ()).json, allow_nan=False)

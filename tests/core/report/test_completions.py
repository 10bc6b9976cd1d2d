"""Quantiles of all completions, and which of them go into the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.report.completions import StepSummary, keep_completions, quantiles, share_out, summarise
from tests.core.report.making import answer_row, group_of, opened


def summaries_of(steps: int, groups: int, bytes_a_group: int) -> list[StepSummary]:
    return [
        StepSummary(step=step, completions=groups, groups=groups, bytes=groups * bytes_a_group, failed=0, quantiles={})
        for step in range(1, steps + 1)
    ]


def test_quantiles_are_interpolated_between_neighbours() -> None:
    assert quantiles([0, 1, 2, 3, 4]) == pytest.approx((0.4, 1.0, 2.0, 3.0, 3.6))
    assert quantiles([7.0]) == (7.0,) * 5


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_quantiles_ascend_within_the_values_whatever_their_order(values: list[float]) -> None:
    found = quantiles(values)
    assert list(found) == sorted(found)
    assert min(values) <= found[0] <= found[-1] <= max(values)
    assert quantiles(values[::-1]) == found


def test_a_summary_has_quantiles_of_totals_scores_and_lengths(tmp_path: Path) -> None:
    rows = [answer_row(member=m, total=t, tokens=k) for m, (t, k) in enumerate([(0.0, 10), (None, 20), (1.0, 30)])]
    (one,) = summarise(opened(tmp_path / "run", completions={1: rows}))
    assert (one.step, one.completions, one.groups) == (1, 3, 1)
    assert one.quantiles["reward/mean"][2] == 0.5
    assert one.quantiles["completions/length_mean"][2] == 20
    assert set(one.quantiles) == {
        *("reward/mean", "completions/length_mean"),
        *("rewards/sum_reward/mean", "rewards/format_reward/mean"),
    }


def test_what_is_paid_without_the_form_is_counted(tmp_path: Path) -> None:
    scores = [(1.0, 1.0), (1.0, 0.0), (0.0, 0.0), (None, 0.0), (1.0, None)]
    rows = [answer_row(member=m, scores={"right": r, "form": f}) for m, (r, f) in enumerate(scores)]
    (one,) = summarise(opened(tmp_path / "run", completions={1: rows}))
    assert (one.paid["form"], one.paid_without["form"]) == (2, 1)


def test_what_fits_is_kept_whole(tmp_path: Path) -> None:
    run = opened(tmp_path / "run", completions={1: group_of(1, 0, 1), 2: group_of(2, 1, 1)})
    kept = keep_completions(run, summarise(run), budget_bytes=10**6)
    assert [(answer.step, answer.member) for answer in kept.answers] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert kept.text == "All 4 completions of the run are here."


def test_what_does_not_fit_is_whole_groups_of_spread_steps_and_every_failure_and_it_is_said(tmp_path: Path) -> None:
    files = {step: [*group_of(step, 0, 1), *group_of(step, 1, 1, sample=2)] for step in range(1, 11)}
    files[4][3] |= {"failures": {"sum_reward": "it broke"}}
    run = opened(tmp_path / "run", completions=files)
    summaries = summarise(run)
    size = summaries[0].bytes / 2
    kept = keep_completions(run, summaries, budget_bytes=int(size * 4.5))
    assert [(a.step, a.member) for a in kept.answers] == [
        *((1, 0), (1, 1), (4, 0), (4, 1), (4, 1), (7, 0), (7, 1), (10, 0), (10, 1)),
    ]
    assert kept.text.startswith(
        "9 of 40 completions are here, to keep this file small: the first group of each of 4 steps, evenly spread, "
        "and 1 more on which a reward failed."
    )


@given(st.integers(1, 400), st.integers(1, 40), st.integers(100, 5000), st.integers(1, 10**7))
def test_the_share_has_both_ends_of_the_run_and_keeps_the_budget(
    steps: int, groups: int, bytes_a_group: int, budget: int
) -> None:
    share = share_out(summaries_of(steps, groups, bytes_a_group), budget_bytes=budget)
    assert share.steps[0] == 1
    assert share.steps[-1] == steps
    assert 1 <= share.groups <= groups
    assert len(share.steps) * share.groups * bytes_a_group <= max(budget, 2 * bytes_a_group)


def test_a_run_without_completions_keeps_none() -> None:
    assert share_out([], budget_bytes=10).steps == ()

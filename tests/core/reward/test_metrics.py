"""Metrics of scores, hand-worked."""

from __future__ import annotations

import pytest

from grpo_core.reward.metrics import reward_metrics
from grpo_core.types import Failed, Outcome, ScoredGroup
from tests.core.reward.making import group


def scored(totals: list[float | None], **outcomes: list[Outcome]) -> ScoredGroup:
    return ScoredGroup(
        group=group(["x"] * len(totals)),
        outcomes={name: tuple(values) for name, values in outcomes.items()},
        totals=tuple(totals),
    )


def test_each_reward_and_the_totals_have_their_numbers() -> None:
    metrics = reward_metrics(
        [
            scored([1.0, 2.0, None], a=[1.0, 2.0, None], b=[None, None, None]),
            scored([4.0, None, None], a=[4.0, None, Failed("x")], b=[None, None, None]),
        ]
    )
    assert metrics == {
        "rewards/a/mean": pytest.approx(7 / 3),
        "rewards/a/std": pytest.approx((7 / 3) ** 0.5),
        "rewards/a/coverage": pytest.approx(4 / 6),
        "rewards/a/failed": 1.0,
        "rewards/a/mixed_groups": 2.0,
        "rewards/b/mean": None,
        "rewards/b/std": None,
        "rewards/b/coverage": 0.0,
        "rewards/b/failed": 0.0,
        "rewards/b/mixed_groups": 0.0,
        "reward/mean": pytest.approx(7 / 3),
        "reward/std": pytest.approx((7 / 3) ** 0.5),
        "reward/group_std": pytest.approx(0.5**0.5),
        "reward/no_total": 3.0,
    }


def test_one_score_has_no_spread_and_none_has_no_metric() -> None:
    metrics = reward_metrics([scored([1.0], a=[1.0])])
    assert (metrics["rewards/a/std"], metrics["reward/std"], metrics["reward/group_std"]) == (0.0, 0.0, None)
    metrics = reward_metrics([scored([None], a=[None])])
    assert (metrics["reward/mean"], metrics["reward/std"]) == (None, None)


def test_a_step_without_groups_has_metrics_of_nothing() -> None:
    assert reward_metrics([])["reward/mean"] is None

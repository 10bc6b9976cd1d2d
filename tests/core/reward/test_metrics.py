"""Metrics of scores, hand-worked."""

from __future__ import annotations

import pytest

from grpo_core.reward.metrics import reward_metrics, task_metrics
from grpo_core.types import Failed, Outcome, ScoredGroup
from tests.core.reward.making import group


def scored(totals: list[float | None], *, task: str | None = None, **outcomes: list[Outcome]) -> ScoredGroup:
    return ScoredGroup(
        group=group(["x"] * len(totals), {"task": task}),
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


def test_each_task_has_its_share_its_reward_and_its_spread() -> None:
    assert task_metrics(
        [
            scored([1.0, 0.0], task="math"),
            scored([1.0, 1.0], task="math"),
            scored([None, 3.0], task="code"),
            scored([9.0, 9.0]),
        ]
    ) == {
        "tasks/code/share": 0.25,
        "tasks/code/reward_mean": 3.0,
        "tasks/code/group_std": None,
        "tasks/math/share": 0.5,
        "tasks/math/reward_mean": 0.75,
        "tasks/math/group_std": pytest.approx(0.5**0.5 / 2),
    }


def test_rows_without_tasks_have_no_metrics_of_tasks() -> None:
    assert task_metrics([scored([1.0, 0.0])]) == {}
    assert task_metrics([]) == {}

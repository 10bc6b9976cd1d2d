"""Totals: hand-worked numbers, and what may not change them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.reward.totals import total_of
from grpo_core.types import Failed

scores = st.floats(-10, 10).map(lambda value: round(value, 3))
outcomes_and_weights = st.lists(st.tuples(st.none() | scores, scores), min_size=1, max_size=6)


def test_a_reward_that_does_not_apply_is_left_out_of_the_sum() -> None:
    assert total_of([1.0, None], [1.0, 2.0]) == 1.0
    assert total_of([None, 0.25], [1.0, 2.0]) == 0.5
    assert total_of([1.0, 0.0, None], [0.1, 1.0, 5.0]) == pytest.approx(0.1)


def test_a_mean_is_taken_over_the_weights_that_apply() -> None:
    assert total_of([1.0, None, 0.0], [1.0, 2.0, 3.0], "mean") == 0.25
    assert total_of([1.0, None], [0.2, 2.0], "mean") == 1.0


def test_a_failed_score_leaves_no_total_even_with_weight_0() -> None:
    assert total_of([1.0, Failed("x")], [1.0, 1.0]) is None
    assert total_of([1.0, Failed("x")], [1.0, 0.0]) is None


def test_no_score_at_all_leaves_no_total() -> None:
    assert total_of([None, None], [1.0, 1.0]) is None
    assert total_of([1.0], [0.0], "mean") is None


def test_a_weight_of_0_switches_a_reward_off() -> None:
    assert total_of([5.0, 2.0], [0.0, 1.0]) == 2.0
    assert total_of([None, 0.0], [0.0, 1.0]) == 0.0


@given(outcomes_and_weights, st.randoms(use_true_random=False))
def test_the_order_of_rewards_does_not_matter(pairs, random) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)
    for reduce in ("sum", "mean"):
        assert total_of(*zip(*pairs, strict=True), reduce) == total_of(*zip(*shuffled, strict=True), reduce)


@given(outcomes_and_weights, scores)
def test_a_reward_that_never_applies_leaves_totals(pairs, weight: float) -> None:
    for reduce in ("sum", "mean"):
        assert total_of(*zip(*pairs, strict=True), reduce) == total_of(
            *zip(*[*pairs, (None, weight)], strict=True), reduce
        )


@given(st.lists(st.tuples(scores, st.floats(0.1, 5)), min_size=1, max_size=6))
def test_a_mean_lies_between_the_scores(pairs) -> None:
    values = [score for score, _weight in pairs]
    mean = total_of(*zip(*pairs, strict=True), "mean")
    assert mean is not None
    assert min(values) - 1e-9 <= mean <= max(values) + 1e-9
    assert math.isfinite(mean)

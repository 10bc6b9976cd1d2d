"""Numbers worked by hand, then what holds for all numbers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import settings as runs
from hypothesis import strategies as st

from grpo_core.advantage.estimate import estimate
from grpo_core.recipe.schema import AdvantageSettings

KINDS = [
    AdvantageSettings(estimator="group_mean", scale="std"),
    AdvantageSettings(estimator="group_mean", scale="none"),
    AdvantageSettings(estimator="group_mean", scale="batch"),
    AdvantageSettings(estimator="rloo"),
    AdvantageSettings(estimator="reinforce_plus_plus"),
]
GROUP_MEAN, UNSCALED, BATCH, RLOO, REINFORCE = KINDS

# No deadline: a busy machine is not a wrong number.
quick = runs(max_examples=40, deadline=None)
every_kind = pytest.mark.parametrize("settings", KINDS, ids=lambda s: f"{s.estimator}-{s.scale}")
# Multiples of 1/64 below 64, so that shifting and doubling them is exact and no spread is near the tolerance.
totals = st.integers(-4096, 4096).map(lambda n: n / 64)
groups = st.lists(st.lists(st.none() | totals, min_size=1, max_size=6), min_size=1, max_size=5)


def close(advantages: tuple[tuple[float, ...], ...]) -> object:
    return tuple(pytest.approx(group, rel=1e-9, abs=1e-9) for group in advantages)


def test_group_mean_divides_by_the_unbiased_standard_deviation_of_the_group() -> None:
    # mean 1/2, deviations ±1/2, variance (4 * 1/4) / 3 = 1/3, so ±(1/2) * √3.
    advantages = estimate([[1.0, 0.0, 0.0, 1.0]], GROUP_MEAN).advantages
    assert advantages == close(((math.sqrt(3) / 2, -math.sqrt(3) / 2, -math.sqrt(3) / 2, math.sqrt(3) / 2),))


def test_group_mean_without_scale_is_the_distance_from_the_mean() -> None:
    assert estimate([[3.0, 0.0, 0.0], [1.0, 2.0, 6.0]], UNSCALED).advantages == ((2.0, -1.0, -1.0), (-2.0, -1.0, 3.0))


def test_batch_scale_divides_by_the_standard_deviation_of_all_totals_of_the_step() -> None:
    # Totals 1, 0, 4, 0: mean 5/4, squares 1/16 + 25/16 + 121/16 + 25/16 = 172/16, variance 172/48 = 43/12.
    spread = math.sqrt(43 / 12)
    advantages = estimate([[1.0, 0.0], [4.0, 0.0]], BATCH).advantages
    assert advantages == close(((0.5 / spread, -0.5 / spread), (2 / spread, -2 / spread)))


def test_rloo_subtracts_the_mean_of_the_others() -> None:
    # 1 - (0 + 0 + 1)/3, 0 - (1 + 0 + 1)/3, …
    assert estimate([[1.0, 0.0, 0.0, 1.0]], RLOO).advantages == close(((2 / 3, -2 / 3, -2 / 3, 2 / 3),))


def test_reinforce_plus_plus_divides_centred_totals_by_their_spread_over_the_step() -> None:
    # Centred ±1/2 and ±2: variance (1/4 + 1/4 + 4 + 4) / 3 = 17/6.
    spread = math.sqrt(17 / 6)
    advantages = estimate([[1.0, 0.0], [4.0, 0.0]], REINFORCE).advantages
    assert advantages == close(((0.5 / spread, -0.5 / spread), (2 / spread, -2 / spread)))


@every_kind
def test_a_group_whose_totals_agree_has_exactly_no_advantage(settings: AdvantageSettings) -> None:
    # 0.1 + 0.2 differs from 0.3 in the last bit: a spread of 5e-17 that a division would blow up to 1.
    result = estimate([[0.3, 0.1 + 0.2, 0.3], [1.0, 0.0, 1.0]], settings)
    assert result.no_signal == (True, False)
    assert result.advantages[0] == (0.0, 0.0, 0.0)
    assert any(result.advantages[1])


@every_kind
def test_a_group_with_fewer_than_two_totals_has_no_signal(settings: AdvantageSettings) -> None:
    result = estimate([[None, 5.0, None], [None, None], [1.0, 0.0]], settings)
    assert result.no_signal == (True, True, False)
    assert result.advantages[:2] == ((0.0, 0.0, 0.0), (0.0, 0.0))


@every_kind
def test_a_step_without_any_total_gives_zeros(settings: AdvantageSettings) -> None:
    assert estimate([[None, None], [None]], settings).advantages == ((0.0, 0.0), (0.0,))


def test_totals_closer_than_the_tolerance_have_no_signal_and_farther_ones_have() -> None:
    settings = AdvantageSettings(tolerance=0.25)
    assert estimate([[0.0, 0.25], [0.0, 0.5]], settings).no_signal == (True, False)


def test_a_tolerance_of_zero_still_treats_equal_totals_as_no_signal() -> None:
    settings = AdvantageSettings(tolerance=0.0)
    assert estimate([[0.5, 0.5], [0.5, 0.5 + 2**-40]], settings).no_signal == (True, False)


@every_kind
@quick
@given(step=groups)
def test_a_total_of_none_gets_zero_and_changes_nobody_else(
    settings: AdvantageSettings, step: list[list[float | None]]
) -> None:
    with_none = estimate(step, settings)
    without = estimate([[total for total in group if total is not None] for group in step], settings)
    assert with_none.no_signal == without.no_signal
    for group, advantages, others in zip(step, with_none.advantages, without.advantages, strict=True):
        assert tuple(a for total, a in zip(group, advantages, strict=True) if total is not None) == others
        assert all(a == 0.0 for total, a in zip(group, advantages, strict=True) if total is None)


@every_kind
@quick
@given(step=groups, shift=totals)
def test_shifting_all_totals_changes_no_advantage(
    settings: AdvantageSettings, step: list[list[float | None]], shift: float
) -> None:
    shifted = [[None if total is None else total + shift for total in group] for group in step]
    assert estimate(shifted, settings).advantages == close(estimate(step, settings).advantages)


@every_kind
@quick
@given(step=groups, power=st.integers(-3, 8))
def test_scaling_all_totals_scales_advantages_or_leaves_them_where_they_are_normalised(
    settings: AdvantageSettings, step: list[list[float | None]], power: int
) -> None:
    factor = 2.0**power
    scaled = estimate([[None if total is None else total * factor for total in group] for group in step], settings)
    normalised = settings.estimator == "reinforce_plus_plus" or (
        settings.estimator == "group_mean" and settings.scale != "none"
    )
    grown = tuple(
        tuple(a * (1.0 if normalised else factor) for a in group) for group in estimate(step, settings).advantages
    )
    assert scaled.advantages == close(grown)


@every_kind
@quick
@given(step=groups, data=st.data())
def test_the_order_of_completions_does_not_matter_to_the_last_bit(
    settings: AdvantageSettings, step: list[list[float | None]], data: st.DataObject
) -> None:
    orders = [data.draw(st.permutations(range(len(group)))) for group in step]
    shuffled = [[group[i] for i in order] for group, order in zip(step, orders, strict=True)]
    expected = tuple(
        tuple(advantages[i] for i in order)
        for advantages, order in zip(estimate(step, settings).advantages, orders, strict=True)
    )
    assert estimate(shuffled, settings).advantages == expected


@every_kind
@quick
@given(step=groups)
def test_the_advantages_of_a_group_sum_to_zero(settings: AdvantageSettings, step: list[list[float | None]]) -> None:
    for group in estimate(step, settings).advantages:
        assert math.fsum(group) == pytest.approx(0.0, abs=1e-9)


@every_kind
@quick
@given(step=groups)
def test_a_better_total_of_the_same_group_has_a_higher_advantage(
    settings: AdvantageSettings, step: list[list[float | None]]
) -> None:
    for group, advantages in zip(step, estimate(step, settings).advantages, strict=True):
        pairs = sorted((t, a) for t, a in zip(group, advantages, strict=True) if t is not None)
        assert [a for _, a in pairs] == sorted(a for _, a in pairs)


@quick
@given(step=st.lists(st.lists(totals, min_size=2, max_size=6), min_size=1, max_size=5))
def test_standardised_groups_have_a_standard_deviation_of_one(step: list[list[float]]) -> None:
    result = estimate(step, GROUP_MEAN)
    for advantages, silent in zip(result.advantages, result.no_signal, strict=True):
        if not silent:
            assert math.fsum(a * a for a in advantages) / (len(advantages) - 1) == pytest.approx(1.0)


@pytest.mark.parametrize("unit", [1e-298, 1e-200, 1e-160, 1.0, 1e30])
@every_kind
def test_totals_of_any_size_that_a_score_can_have_are_compared(settings: AdvantageSettings, unit: float) -> None:
    """Squares of deviations of 1e-200 are 0 in float64: the standard deviation must not be."""
    exact = settings.model_copy(update={"tolerance": 0.0})
    scales = settings.estimator == "reinforce_plus_plus" or (settings.estimator, settings.scale) in (
        ("group_mean", "std"),
        ("group_mean", "batch"),
    )
    found = estimate([[1 * unit, 2 * unit]], exact)
    half = estimate([[1.0, 2.0]], exact).advantages[0]
    assert found.no_signal == (False,)
    assert found.advantages[0] == pytest.approx([value if scales else value * unit for value in half], rel=1e-12, abs=0)


@every_kind
def test_totals_that_nothing_can_be_divided_by_are_equal(settings: AdvantageSettings) -> None:
    result = estimate([[5e-324, 1e-323, 0.0]], settings.model_copy(update={"tolerance": 0.0}))
    assert result == estimate([[0.0, 0.0, 0.0]], settings)

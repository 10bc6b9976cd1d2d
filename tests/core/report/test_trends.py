"""What a noisy curve does."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.report.trends import Curve, lowest, move, peak, smoothed
from tests.core.report.making import curve_of, rising

values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80)


def test_the_ends_are_the_means_of_a_fifth() -> None:
    found = move(curve_of([0, 2, *[99] * 6, 7, 9]))
    assert (found.before, found.after, found.change) == (1.0, 8.0, 7.0)
    assert found.error == pytest.approx(2**0.5)  # two variances of 2, over 2 points each: three of it are 4.2
    assert found.rose(6.9)
    assert not found.rose(7.1)
    assert not found.fell(0)
    assert found.flat(7.1)
    assert move(curve_of([0, 2, *[99] * 6, 4, 6])).flat(0.1)


def test_a_change_within_the_noise_is_none() -> None:
    noise = random.Random(0)
    assert move(curve_of([noise.gauss(0, 1) for _ in range(100)])).flat(0.1)
    assert move(curve_of(rising(0, 3, 100, noise=1))).rose(0.1)


def test_a_single_point_has_not_moved() -> None:
    assert move(curve_of([2.0])).change == 0
    assert move(curve_of([2.0])).flat(0.1)


@given(values, st.floats(-1e3, 1e3))
def test_shifting_a_curve_leaves_its_change(points: list[float], shift: float) -> None:
    moved = move(curve_of([value + shift for value in points]))
    assert moved.change == pytest.approx(move(curve_of(points)).change, abs=1e-3)


@given(values)
def test_smoothing_stays_within_the_curve_and_keeps_its_steps(points: list[float]) -> None:
    made = smoothed(curve_of(points))
    assert len(made) == len(points)
    assert min(points) - 1e-6 <= min(made.values) <= max(made.values) <= max(points) + 1e-6


def test_a_peak_is_of_the_smoothed_curve_so_that_a_single_spike_is_none() -> None:
    hill = [0.0] * 10 + [5.0] * 5 + [0.0] * 10
    assert peak(curve_of(hill)).step == 12
    assert 11 <= peak(curve_of([*hill, 9.0, *[0.0] * 14])).step <= 15
    assert lowest(curve_of([-value for value in hill])).value == -5.0


def test_a_curve_knows_whether_it_is_long_enough() -> None:
    assert not Curve.of([(1, 0.0)] * 19).enough
    assert Curve.of([(1, 0.0)] * 20).enough

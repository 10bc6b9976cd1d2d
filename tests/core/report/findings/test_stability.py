"""Whether a run is stable, on curves like those of the two collapses that are known."""

from __future__ import annotations

import pytest

from grpo_core.report.findings.stability import climbing, collapse, engine_apart, entropy_gone, not_finite
from grpo_core.report.trends import Curve
from tests.core.report.making import curve_of, rising


def is_collapse(values: list[float]) -> bool:
    return collapse(curve_of(values), label="reward", metric="reward/mean") is not None


def test_a_reward_that_fell_and_stayed_down_has_collapsed_near_the_step_of_its_best() -> None:
    values = [*rising(0.1, 0.5, 200, noise=0.05), *rising(0.5, 0.02, 10), *rising(0.02, 0.02, 90, noise=0.02)]
    found = collapse(curve_of(values), label="The total reward", metric="reward/mean")
    assert found is not None
    assert found.level == "bad"
    assert "and is 0.0" in found.text
    assert 170 <= int(found.text.split("near step ")[1].split(",")[0]) <= 205
    assert found.advice.index("learning rate") < found.advice.index("max_grad_norm")


@pytest.mark.parametrize("low", [-1.0, -5.0])
def test_rewards_below_zero_collapse_by_what_they_lost(low: float) -> None:
    assert is_collapse([*rising(low, 0.0, 100), *rising(0.0, low, 100), *[low] * 50])


def test_a_dip_that_recovered_is_no_collapse() -> None:
    assert not is_collapse([*rising(0.1, 0.5, 50), *rising(0.5, 0.1, 20), *rising(0.1, 0.5, 50), *[0.5] * 30])


def test_noise_learning_and_standing_still_are_no_collapse() -> None:
    assert not is_collapse(rising(0.0, 0.0, 200, noise=0.3))
    assert not is_collapse(rising(0.1, 0.8, 200, noise=0.1))
    assert not is_collapse([0.0] * 100)
    assert not is_collapse([0.5, 0.1])


def test_gradient_norm_kl_and_loss_that_climb_together_are_out_of_hand() -> None:
    explosive = curve_of([0.5] * 90 + rising(0.5, 40, 30))
    found = climbing(explosive, {"policy/kl": explosive, "policy/loss": explosive})
    assert found is not None
    assert (found.level, found.metrics) == ("bad", ("trainer/grad_norm", "policy/kl", "policy/loss"))


def test_a_kl_that_grows_steadily_beside_a_calm_gradient_is_healthy() -> None:
    calm, growing = curve_of(rising(0.5, 0.6, 120, noise=0.05)), curve_of(rising(0.0, 0.1, 120))
    assert climbing(calm, {"policy/kl": growing}) is None
    assert climbing(growing, {"policy/kl": growing}) is None, "steady growth is not three times its own median"


def test_a_gradient_norm_alone_is_not_enough() -> None:
    explosive = curve_of([0.5] * 90 + rising(0.5, 40, 30))
    assert climbing(explosive, {}) is None
    assert climbing(explosive, {"policy/kl": curve_of([0.0] * 120)}) is None
    assert climbing(explosive, {"policy/kl": curve_of([1.0])}) is None


def test_an_entropy_that_fell_below_a_tenth_explores_no_more() -> None:
    found = entropy_gone(curve_of([*rising(1.2, 0.0), *[0.01] * 20]))
    assert found is not None
    assert found.rule == "entropy-gone"
    assert entropy_gone(curve_of(rising(1.2, 0.4))) is None
    assert entropy_gone(curve_of([0.0] * 60)) is None
    assert entropy_gone(curve_of([1.0, 0.0])) is None


def test_a_gap_beyond_rounding_is_said_and_rounding_is_not() -> None:
    found = engine_apart(curve_of([0.001] * 30 + [0.4] * 30))
    assert found is not None
    assert "up to 0.4 nats" in found.text
    assert engine_apart(curve_of([0.02] * 60)) is None
    assert engine_apart(Curve((), ())) is None


def test_values_that_are_no_numbers_are_named_from_their_first_step() -> None:
    found = not_finite([(9, "policy/kl"), (7, "trainer/loss"), (8, "trainer/loss")])
    assert found is not None
    assert "From step 7 on" in found.text
    assert "policy/kl, trainer/loss" in found.text
    many = not_finite([(1, f"m{number}") for number in range(9)])
    assert many is not None
    assert "m5 and others" in many.text
    assert not_finite([]) is None

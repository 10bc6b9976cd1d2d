"""Whether a run is stable, on curves like those of the two collapses that are known."""

from __future__ import annotations

from grpo_core.report.findings.stability import collapse, engine_apart, entropy_gone, not_finite
from grpo_core.report.trends import Curve
from tests.core.report.making import curve_of, rising

NOTHING = Curve((), ())
FELL = curve_of([*rising(0.1, 0.5, 200, noise=0.03), *rising(0.5, 0.02, 10), *rising(0.02, 0.02, 90, noise=0.01)])
JUDGED = curve_of([0.0] * 204 + [1.0] * 96)


def test_a_collapse_tells_the_best_and_the_end_and_asks_for_a_lower_learning_rate_first() -> None:
    found = collapse(JUDGED, FELL, {})
    assert found is not None
    assert (found.rule, found.level, found.title) == ("collapse", "bad", "Collapse at step 205")
    assert found.text.startswith("The total reward was 0.4")
    assert 180 <= int(found.text.split("near step ")[1].split(",")[0]) <= 205
    assert found.advice.index("learning rate") < found.advice.index("beta") < found.advice.index("max_grad_norm")


def test_what_climbed_is_named_and_what_did_not_is_not() -> None:
    climbs, calm = curve_of([0.5] * 204 + rising(0.5, 40, 96)), curve_of([0.5] * 300)
    found = collapse(JUDGED, FELL, {"trainer/grad_norm": climbs, "policy/kl": calm, "policy/none": NOTHING})
    assert found is not None
    assert "Medians before and since: trainer/grad_norm 0.5 → 20.2." in found.text
    assert found.metrics == ("reward/mean", "health/collapse", "trainer/grad_norm")


def test_a_collapse_that_is_over_is_a_warning() -> None:
    found = collapse(curve_of([0.0, 1.0, 1.0, 0.0]), curve_of([0.5, 0.1, 0.1, 0.5]), {})
    assert found is not None
    assert (found.rule, found.level, found.title) == ("recovered", "warning", "Collapse at step 2, and recovery")


def test_without_a_judgement_there_is_no_collapse() -> None:
    assert collapse(NOTHING, FELL, {}) is None
    assert collapse(curve_of([0.0] * 300), FELL, {}) is None
    assert collapse(JUDGED, NOTHING, {}) is None


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
    assert engine_apart(NOTHING) is None


def test_values_that_are_no_numbers_are_named_from_their_first_step() -> None:
    found = not_finite([(9, "policy/kl"), (7, "trainer/loss"), (8, "trainer/loss")])
    assert found is not None
    assert "From step 7 on" in found.text
    assert "policy/kl, trainer/loss" in found.text
    many = not_finite([(1, f"m{number}") for number in range(9)])
    assert many is not None
    assert "m5 and others" in many.text
    assert not_finite([]) is None

"""Whether the task is being learnt, on curves like those of the known runs."""

from __future__ import annotations

import pytest

from grpo_core.report.findings.finding import Finding
from grpo_core.report.findings.learning import goals_apart, held_out, learning, names_listed
from grpo_core.report.trends import Curve
from tests.core.report.making import curve_of, rising

SHORT = curve_of([0.1] * 5)


def read(accuracy: list[float], spread: list[float]) -> Finding:
    found = learning(curve_of(accuracy), curve_of(spread), label="accuracy", metric="rewards/a/mean", verifies=True)
    assert found is not None
    assert found.metrics == ("rewards/a/mean", "reward/group_std")
    return found


def test_accuracy_up_and_spread_down_is_learnt() -> None:
    found = read(rising(0.4, 0.9, noise=0.03), rising(0.4, 0.1, noise=0.02))
    assert (found.rule, found.level) == ("learnt", "good")
    assert "rose from 0.4" in found.text
    assert "fell from 0.3" in found.text


def test_an_accuracy_near_one_is_learnt_whatever_the_spread() -> None:
    found = read([*rising(0.4, 1.0), *[1.0] * 30], rising(0.1, 0.1, 90))
    assert (found.rule, found.title) == ("learnt", "The task is learnt")


def test_accuracy_up_with_the_spread_as_wide_as_before_is_still_learning() -> None:
    found = read(rising(0.1, 0.5, noise=0.03), rising(0.3, 0.32, noise=0.03))
    assert (found.rule, found.level) == ("learning", "good")
    assert "More steps" in found.advice


def test_a_spread_that_stays_near_a_fifth_while_accuracy_stands_is_a_limit() -> None:
    found = read(rising(0.5, 0.5, noise=0.03), rising(0.2, 0.2, noise=0.02))
    assert (found.rule, found.level) == ("limit", "note")
    assert "stays at 0.2" in found.text


@pytest.mark.parametrize("spread", [0.01, 0.5])
def test_an_accuracy_that_stands_with_another_spread_has_learnt_nothing(spread: float) -> None:
    assert read(rising(0.02, 0.02, noise=0.01), [spread] * 60).rule == "not-learning"


def test_a_task_that_was_solved_before_left_nothing_to_learn() -> None:
    assert read([0.99] * 60, [0.05] * 60).rule == "solved"


def test_a_total_has_no_top_at_one() -> None:
    curves = curve_of([1.5] * 60), curve_of([0.2] * 60)
    found = learning(*curves, label="The total reward", metric="reward/mean", verifies=False)
    assert found is not None
    assert found.rule == "limit"


def test_short_or_falling_curves_are_not_read_here() -> None:
    assert learning(SHORT, SHORT, label="accuracy", metric="m", verifies=True) is None
    assert (
        learning(curve_of(rising(0.9, 0.1)), curve_of([0.2] * 60), label="accuracy", metric="m", verifies=True) is None
    )


def test_goals_that_part_are_named_with_what_they_lost() -> None:
    rewards = {
        "right": curve_of(rising(0.1, 0.6, noise=0.02)),
        "short": curve_of(rising(0.9, 0.5, noise=0.02)),
        "calm": curve_of([0.5] * 60),
    }
    found = goals_apart(rewards)
    assert found is not None
    assert found.text.startswith("right rose while short fell from 0.8")
    assert found.metrics == ("rewards/right/mean", "rewards/short/mean")


def test_goals_that_go_together_or_are_too_short_are_no_finding() -> None:
    up = curve_of(rising(0.1, 0.6))
    assert goals_apart({"a": up, "b": up}) is None
    assert goals_apart({"a": up, "b": curve_of([1.0, 0.0])}) is None
    assert goals_apart({}) is None


@pytest.mark.parametrize(
    ("values", "training", "rule", "level"),
    [
        ([0.2, 0.5], [0.5] * 60, "held-out", "good"),
        ([0.5, 0.5], [0.5] * 60, "held-out", "note"),
        ([0.5, 0.3], [0.5] * 60, "held-out", "warning"),
        ([0.5, 0.5], rising(0.5, 0.9), "overfit", "warning"),
        ([0.5, 0.36], [0.5] * 60, "held-out", "note"),
        ([0.5, 0.64], [0.5] * 60, "held-out", "note"),
    ],
)
def test_held_out_prompts_are_compared_first_to_last(
    values: list[float], training: list[float], rule: str, level: str
) -> None:
    curve = Curve((0, 100), tuple(values))
    found = held_out(curve, curve_of(training), error=0.05, label="Accuracy", metric="eval/accuracy")
    assert found is not None
    assert (found.rule, found.level) == (rule, level)
    assert f"went from {values[0]} (step 0) to {values[1]} (step 100)" in found.text


def test_a_single_evaluation_says_nothing() -> None:
    training = curve_of([0.5] * 60)
    assert held_out(Curve((0,), (0.5,)), training, error=0.0, label="Accuracy", metric="eval/accuracy") is None


def test_held_out_prompts_of_a_short_run_say_nothing() -> None:
    assert held_out(Curve((0, 5), (0.9, 0.1)), SHORT, error=0.0, label="Accuracy", metric="eval/accuracy") is None


def test_names_are_listed_as_people_do() -> None:
    assert [names_listed(list(text)) for text in ("a", "ab", "abc")] == ["a", "a and b", "a, b and c"]

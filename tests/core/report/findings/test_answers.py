"""What the answers are like."""

from __future__ import annotations

from grpo_core.report.findings.answers import (
    cut_off,
    failing,
    length,
    mixed_groups,
    no_signal,
    paid_without_form,
    unscored,
)
from grpo_core.report.findings.finding import Finding
from grpo_core.report.trends import Curve
from tests.core.report.making import curve_of, rising

NOTHING = Curve((), ())
UP, FLAT = rising(0.1, 0.8), [0.5] * 60


def rule(tokens: list[float], reward: list[float]) -> str | None:
    found = length(curve_of(tokens), curve_of(reward))
    return None if found is None else f"{found.rule} {found.level}"


def known(found: Finding | None) -> Finding:
    assert found is not None
    return found


def test_a_length_that_dips_and_comes_back_is_usual() -> None:
    tokens = [*rising(350, 180, 30), *rising(180, 350, 40)]
    found = known(length(curve_of(tokens), curve_of(UP)))
    assert (found.rule, found.level) == ("length-dip", "note")
    assert "a minimum of 18" in found.text


def test_growth_is_judged_by_what_it_brought() -> None:
    assert rule(rising(100, 300), UP) == "length-grew note"
    assert rule(rising(100, 300), FLAT) == "length-drift warning"
    assert rule(rising(300, 100), FLAT) == "length-fell note"
    assert rule(rising(100, 110, noise=2), FLAT) is None
    assert length(curve_of([1, 2]), curve_of([1, 2])) is None


def test_many_cut_off_completions_name_the_limit() -> None:
    found = known(cut_off(curve_of([0.0] * 40 + [0.25] * 20), max_tokens=512))
    assert "25% of them end at the limit of 512 tokens" in found.text
    assert "at the limit," in known(cut_off(curve_of([0.25] * 60), max_tokens=None)).text
    assert cut_off(curve_of([0.05] * 60), max_tokens=512) is None
    assert cut_off(NOTHING, max_tokens=512) is None


def test_rewards_paid_without_the_form_are_said_with_their_share() -> None:
    found = known(paid_without_form(curve_of([0.3] * 30), form="format_reward"))
    assert "30% of the completions that other rewards pay get 0 from format_reward" in found.text
    assert paid_without_form(curve_of([0.01] * 30), form="format_reward") is None
    assert paid_without_form(curve_of([0.3] * 3), form="format_reward") is None
    assert paid_without_form(NOTHING, form="format_reward") is None


def test_groups_without_signal_are_solved_or_too_hard() -> None:
    share = curve_of([0.8] * 60)
    assert known(no_signal(share, curve_of([0.9] * 60), label="accuracy")).title == "Most prompts are solved every time"
    hard = known(no_signal(share, curve_of([0.02] * 60), label="accuracy"))
    assert (hard.level, hard.title) == ("warning", "Most prompts teach nothing")
    assert known(no_signal(share, None, label="accuracy")).text.endswith("so they teach nothing.")
    assert known(no_signal(share, NOTHING, label="accuracy")).level == "warning"
    assert no_signal(curve_of([0.3] * 60), curve_of(FLAT), label="accuracy") is None
    assert no_signal(NOTHING, NOTHING, label="accuracy") is None


def test_failed_missing_and_mixed_scores_are_counted() -> None:
    assert "computed: 5, in 2 of 4 steps" in known(failing(curve_of([0, 3, 2, 0]), reward="r")).text
    assert known(unscored(curve_of([0, 4]))).text.endswith(": 4.")
    assert "In 1 steps" in known(mixed_groups(curve_of([0, 2]), reward="r")).text
    nothing = curve_of([0, 0])
    assert [failing(nothing, reward="r"), unscored(nothing), mixed_groups(nothing, reward="r")] == [None] * 3

"""How much better than expected each completion of a step was. Plain Python, no torch.

What it does not do: mask truncated completions (they stay in the baseline, and leave the loss later), subtract a KL
penalty (the totals already carry it), or spread advantages over tokens (every token of a completion has the same).

Place in the flow: scored groups → **advantages** → train batches. Sums are `math.fsum`, exact and so independent of
the order in which completions arrived.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from grpo_core.recipe.schema import AdvantageSettings

__all__ = ["Estimate", "estimate"]

Totals = Sequence[float | None]
Centred = tuple[float | None, ...]

_LEAST_SPREAD = 1e-300
"""Totals that differ by less are equal: nothing in float64 can be divided by such a difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The advantages of one step."""

    advantages: tuple[tuple[float, ...], ...]
    """[groups][G] 0.0 for a completion without a total."""
    no_signal: tuple[bool, ...]
    """[groups] True: fewer than two members have a total, or all totals agree within the tolerance; every advantage of
    the group is then exactly 0.0."""


def estimate(totals: Sequence[Totals], settings: AdvantageSettings) -> Estimate:
    """Advantages of all groups of a step from their [groups][G] totals.

    A total of None takes no part in any mean or spread. Sources: `group_mean` arXiv 2402.03300 §4.1.2 (without a scale
    arXiv 2503.20783, over the step arXiv 2508.08221), `rloo` arXiv 2402.14740, `reinforce_plus_plus` arXiv 2501.03262
    (the variant with the group's mean as baseline).

    Example: `estimate([[1.0, 0.0, None]], AdvantageSettings(scale="none")).advantages == ((0.5, -0.5, 0.0),)`
    """
    no_signal = tuple(_has_no_signal(group, settings.tolerance) for group in totals)
    centred = [_centre(group, silent) for group, silent in zip(totals, no_signal, strict=True)]
    match settings.estimator:
        case "group_mean":
            advantages = _scaled(totals, centred, settings)
        case "rloo":
            advantages = [_leave_one_out(group) for group in centred]
        case "reinforce_plus_plus":
            spread = _std([value for group in centred for value in _scored(group)])
            advantages = [_divided(group, spread) for group in centred]
    return Estimate(advantages=tuple(map(_without_none, advantages)), no_signal=no_signal)


def _has_no_signal(group: Totals, tolerance: float) -> bool:
    scored = _scored(group)
    return len(scored) < 2 or max(scored) - min(scored) <= max(tolerance, _LEAST_SPREAD)


def _centre(group: Totals, silent: bool) -> Centred:
    """Minus the group's mean; exactly 0.0 without signal, where rounding would otherwise leave specks of 1e-17."""
    scored = _scored(group)
    mean = math.fsum(scored) / len(scored) if scored else 0.0
    return tuple(None if total is None else 0.0 if silent else total - mean for total in group)


def _scaled(totals: Sequence[Totals], centred: Sequence[Centred], settings: AdvantageSettings) -> list[Centred]:
    match settings.scale:
        case "none":
            return list(centred)
        case "std":
            return [_divided(group, _std(_scored(raw))) for raw, group in zip(totals, centred, strict=True)]
        case "batch":
            spread = _std([total for group in totals for total in _scored(group)])
            return [_divided(group, spread) for group in centred]


def _leave_one_out(group: Centred) -> Centred:
    """total - mean of the others = K / (K - 1) * (total - mean of all K)."""
    k = len(_scored(group))
    return tuple(None if value is None or k < 2 else value * k / (k - 1) for value in group)


def _divided(group: Centred, spread: float) -> Centred:
    """Divide by the spread. Without an epsilon: where a group has signal its spread is above the tolerance already, and
    never 0."""
    return tuple(None if value is None else value / spread if value else 0.0 for value in group)


def _std(values: Sequence[float]) -> float:
    """The unbiased standard deviation, divisor n - 1, which trainers in use take; 0.0 for fewer than two values.

    Of deviations relative to the largest, so that no square of a small one underflows.
    """
    if len(values) < 2:
        return 0.0
    mean = math.fsum(values) / len(values)
    deviations = [value - mean for value in values]
    largest = max(map(abs, deviations))
    if largest == 0.0:
        return 0.0
    return largest * math.sqrt(math.fsum((each / largest) ** 2 for each in deviations) / (len(values) - 1))


def _scored(group: Totals) -> list[float]:
    return [value for value in group if value is not None]


def _without_none(group: Centred) -> tuple[float, ...]:
    return tuple(0.0 if value is None else value for value in group)

"""From a completion's outcomes to its total.

Place in the flow: outcomes → **totals** → advantages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from grpo_core.types import Failed, Outcome

__all__ = ["total_of"]


def total_of(
    outcomes: Sequence[Outcome], weights: Sequence[float], reduce: Literal["sum", "mean"] = "sum"
) -> float | None:
    """The weighted sum, or weighted mean, over the rewards that apply.

    None when one of them failed, when none applies, or when those that apply weigh nothing in a mean: the completion
    then takes no part in the update. Sums are exact before rounding, so the order of the rewards does not matter.

    Example: `total_of([1.0, None, 0.5], [1.0, 2.0, 0.2]) == 1.1`
    """
    terms: list[float] = []
    applied: list[float] = []
    for outcome, weight in zip(outcomes, weights, strict=True):
        if isinstance(outcome, Failed):
            return None
        if outcome is not None:
            terms.append(weight * outcome)
            applied.append(weight)
    weighed = math.fsum(applied)
    if not applied or (reduce == "mean" and weighed == 0.0):
        return None
    return math.fsum(terms) / (weighed if reduce == "mean" else 1.0)

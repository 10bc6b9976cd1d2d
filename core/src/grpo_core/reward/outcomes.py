"""From what a reward function returned to three-valued outcomes: a number, None, or `Failed`. Never a default.

numpy arrays and torch tensors are recognised by their shape attributes, so that a worker process needs neither library.

Place in the flow: completions → call → **outcomes** → totals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real

from grpo_core.types import Failed, Outcome

__all__ = ["LARGEST_SCORE", "WrongReturnError", "all_failed", "read_outcomes", "weighed"]

LARGEST_SCORE = 1e12
"""No score, and no score times its weight, is larger: where advantages are not scaled, gradients are as large, and the
norm of a gradient adds up its squares in fp32, which ends at 3e38."""


class WrongReturnError(ValueError):
    """A reward function returned something that is not one score a completion."""


def read_outcomes(returned: object, count: int) -> tuple[Outcome, ...]:
    """Read `count` outcomes out of what a reward returned.

    A list, a tuple, or a one-dimensional array or tensor of numbers and None; a bare None applies to none of the
    completions. A `Failed` is a failure of its own sample alone, and so are NaN, infinity and what is beyond
    `LARGEST_SCORE`. Raises `WrongReturnError` for anything else.
    """
    if returned is None:
        return (None,) * count
    values = _as_sequence(returned, count)
    if len(values) != count:
        raise WrongReturnError(f"returned {len(values)} {_scores(len(values))} for {count} {_completions(count)}")
    return tuple(_outcome(value, position) for position, value in enumerate(values))


def weighed(outcome: Outcome, weight: float) -> Outcome:
    """The outcome as it enters a total; a failure when its weight makes it too large for one."""
    if outcome is None or isinstance(outcome, Failed) or abs(weight * outcome) <= LARGEST_SCORE:
        return outcome
    return Failed(f"returned {outcome:g}, which times its weight {weight:g} is beyond ±{LARGEST_SCORE:g}")


def all_failed(reason: str, count: int) -> tuple[Outcome, ...]:
    """The outcomes of a call that failed as a whole."""
    return (Failed(reason),) * count


def _as_sequence(returned: object, count: int) -> Sequence[object]:
    if isinstance(returned, list | tuple):
        return returned
    shape = getattr(returned, "shape", None)
    to_list = getattr(returned, "tolist", None)
    if shape is not None and len(shape) == 1 and callable(to_list):
        listed: list[object] = to_list()
        return listed
    raise WrongReturnError(f"returned {_described(returned)}; expected a list of {count} {_scores(count)}")


def _outcome(value: object, position: int) -> Outcome:
    if value is None or isinstance(value, Failed):
        return value
    number = _number(value)
    if number is None:
        raise WrongReturnError(
            f"returned {_described(value)} at position {position}; a score is a number, None or Failed"
        )
    if not math.isfinite(number):
        return Failed(f"returned {number}, which is not a finite number")
    if abs(number) > LARGEST_SCORE:
        return Failed(f"returned {number:g}, which is beyond ±{LARGEST_SCORE:g}")
    return number


def _number(value: object) -> float | None:
    """A bool, an int, a float, a numpy scalar or a 0-d tensor as a float; None for everything else."""
    scalar = getattr(value, "item", None)
    if callable(scalar) and getattr(value, "shape", None) == ():
        value = scalar()
    if not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf  # an integer beyond every float


def _described(value: object) -> str:
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"a {type(value).__name__} of shape {tuple(shape)}"
    text = repr(value)
    return f"a {type(value).__name__} ({text if len(text) <= 60 else text[:57] + '...'})"


def _scores(count: int) -> str:
    return "score" if count == 1 else "scores"


def _completions(count: int) -> str:
    return "completion" if count == 1 else "completions"

"""Compares an outcome with what a case names right and wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["ClearError", "difference", "matches"]


@dataclass(frozen=True, slots=True)
class ClearError:
    """The outcome is an error with a message for a person."""

    message: str


def difference(outcome: object, case: Mapping[str, Any]) -> str | None:
    """None when the outcome is one that the case names as right, and none that it names as the fault."""
    tolerance = case.get("tolerance", 1e-9)
    for fault in case.get("must_not", []):
        if matches(outcome, fault, tolerance):
            return f"this is the fault itself: {outcome}"
    right = [case["expected"], *case.get("also_ok", [])]
    if any(matches(outcome, wanted, tolerance) for wanted in right):
        return None
    return f"expected {' or '.join(map(repr, right))}, got {outcome!r}"[:600]


def matches(outcome: Any, wanted: Any, tolerance: float) -> bool:
    """Whether an outcome is the wanted one: numbers within the tolerance, objects by the keys that are wanted."""
    if wanted == "clear error":
        return isinstance(outcome, ClearError)
    if isinstance(outcome, ClearError):
        return False
    if isinstance(wanted, Mapping):
        if set(wanted) == {"less_than"}:
            return isinstance(outcome, float) and outcome < wanted["less_than"]
        return isinstance(outcome, Mapping) and all(
            key in outcome and matches(outcome[key], value, tolerance) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(outcome, list | tuple)
            and len(outcome) == len(wanted)
            and all(matches(one, other, tolerance) for one, other in zip(outcome, wanted, strict=True))
        )
    if isinstance(wanted, bool) or not isinstance(wanted, int | float):
        return type(outcome) is type(wanted) and outcome == wanted
    return isinstance(outcome, int | float) and abs(outcome - wanted) <= tolerance

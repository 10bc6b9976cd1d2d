"""Whether two values of a script are equal: as Python's `==` has it, floats within a tolerance.

Place in the flow: script → marks → **equal** → verdict.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

__all__ = ["equality"]


def equality(relative: float, absolute: float) -> Callable[[Any, Any], Any]:
    """`==` with a tolerance; two lists with arrays of numpy in one of them are compared item by item."""

    def same(one: Any, other: Any) -> Any:
        if type(one) is float and type(other) is float:
            return _close(one, other) or (math.isnan(one) and math.isnan(other))
        if _is_array(one) != _is_array(other) and isinstance(one if _is_array(other) else other, list | tuple):
            return same(_listed(one), _listed(other))
        if type(one) is not type(other):
            return _mixed(one, other)
        if type(one) in (list, tuple):
            return len(one) == len(other) and all(map(same, one, other))
        if type(one) in (dict, OrderedDict):
            if type(one) is OrderedDict and list(one) != list(other):
                return False
            return one.keys() == other.keys() and all(same(one[key], other[key]) for key in other)
        if type(one) in (set, frozenset):
            return one == other or _matched(one, other)
        return one == other

    def _mixed(one: Any, other: Any) -> Any:
        if {type(one), type(other)} == {float, complex}:
            return one == other
        if isinstance(one, float) and isinstance(other, float):
            return _close(float(one), float(other))
        return one == other

    def _close(one: float, other: float) -> bool:
        if one == other:
            return True
        return math.isfinite(one) and math.isfinite(other) and abs(one - other) <= absolute + relative * abs(other)

    def _matched(one: Any, other: Any) -> bool:
        """Whether sets of numbers and tuples hold the same within the tolerance."""
        if len(one) != len(other) or not any(isinstance(each, float | tuple) for each in other):
            return False
        try:
            return all(map(same, sorted(one), sorted(other)))
        except TypeError:
            return False

    return same


def _is_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def _listed(value: Any) -> Any:
    return value.tolist() if _is_array(value) else list(value)

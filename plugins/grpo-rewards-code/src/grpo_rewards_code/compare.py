"""Compares what came back from a program with what a test expects. Runs in the trainer, on plain data only.

Values are exact built-in types (`executor/values.py`), so `==` runs no code of the program; an `Opaque` equals nothing.

Text: trailing blanks, trailing empty lines and line ends don't count. Everything else counts, but for numbers: where
the expected line holds only numbers, blanks between them don't count, and one with a fraction or exponent is met within
a tolerance. Whole numbers are exact, of any size.

Place in the flow: job → run results → **comparison** → score.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from grpo_rewards_code.problem.types import Style

__all__ = ["Tolerance", "same_items", "same_text", "same_value"]

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 400
_WHOLE = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How far a number with a fraction may be off."""

    relative: float = 1e-6
    absolute: float = 1e-9

    def allows(self, actual: float, expected: float) -> bool:
        """Whether two finite numbers are the same within the tolerance."""
        return abs(actual - expected) <= self.absolute + self.relative * abs(expected)


def same_text(actual: str, expected: str, tolerance: Tolerance, *, unordered: bool = False) -> bool:
    """Whether a printed text is the expected one."""
    ours, theirs = _lines(actual), _lines(expected)
    if len(ours) != len(theirs):
        return False
    if unordered:
        return _same_unordered(ours, theirs, lambda one, other: _same_line(one, other, tolerance), _line_rank)
    return all(_same_line(one, other, tolerance) for one, other in zip(ours, theirs, strict=True))


def same_value(
    actual: object, expected: object, tolerance: Tolerance, *, style: Style, unordered: bool = False
) -> bool:
    """Whether a value is the expected one; numbers with a fraction within the tolerance."""
    try:
        if unordered and isinstance(actual, list | tuple | set | frozenset) and isinstance(expected, list | tuple):
            return same_items(list(actual), expected, lambda one, other: _same(one, other, tolerance, style))
        return _same(actual, expected, tolerance, style)
    except RecursionError:
        return False


def same_items(actual: Sequence[Any], expected: Sequence[Any], same: Callable[[Any, Any], bool]) -> bool:
    """Whether two lists hold the same items in any order."""
    return len(actual) == len(expected) and _same_unordered(actual, expected, same, _rank)


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _same_line(actual: str, expected: str, tolerance: Tolerance) -> bool:
    if actual == expected:
        return True
    ours, theirs = actual.split(), expected.split()
    if len(ours) != len(theirs) or not all(map(_number_text, theirs)):
        return False
    return all(_same_number(one, other, tolerance) for one, other in zip(ours, theirs, strict=True))


def _same_number(actual: str, expected: str, tolerance: Tolerance) -> bool:
    if actual == expected:
        return True
    if _WHOLE.fullmatch(expected) or not _number_text(actual):
        return False
    ours, theirs = float(actual), float(expected)
    return math.isfinite(ours) and math.isfinite(theirs) and tolerance.allows(ours, theirs)


def _number_text(text: str) -> bool:
    return (len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text) is not None) or _WHOLE.fullmatch(text) is not None


def _same(actual: Any, expected: Any, tolerance: Tolerance, style: Style) -> bool:
    if isinstance(expected, float) or (isinstance(actual, float) and isinstance(expected, complex)):
        return _same_float(actual, expected, tolerance)
    if isinstance(expected, list | tuple):
        kinds = (list, tuple) if style == "json" else type(expected)
        return (
            isinstance(actual, kinds)
            and len(actual) == len(expected)
            and all(_same(one, other, tolerance, style) for one, other in zip(actual, expected, strict=True))
        )
    if isinstance(expected, Mapping):
        return isinstance(actual, Mapping) and _same_mapping(actual, expected, tolerance, style)
    if isinstance(expected, AbstractSet) and style == "python":
        return isinstance(actual, AbstractSet) and (
            actual == expected or same_items(list(actual), list(expected), lambda a, b: _same(a, b, tolerance, style))
        )
    return bool(actual == expected)


def _same_float(actual: Any, expected: Any, tolerance: Tolerance) -> bool:
    if not isinstance(actual, int | float | complex) or isinstance(actual, bool):
        return bool(actual == expected)
    if actual == expected:
        return True
    try:
        ours = float(actual)  # type: ignore[arg-type]  # a complex one is a TypeError
    except (OverflowError, TypeError):
        return False
    if isinstance(expected, complex) or not math.isfinite(ours) or not math.isfinite(expected):
        return math.isnan(ours) and isinstance(expected, float) and math.isnan(expected)
    return tolerance.allows(ours, expected)


def _same_mapping(actual: Mapping[Any, Any], expected: Mapping[Any, Any], tolerance: Tolerance, style: Style) -> bool:
    if isinstance(actual, OrderedDict) and isinstance(expected, OrderedDict) and list(actual) != list(expected):
        return False
    if style == "json":
        ours = {_json_key(key): value for key, value in actual.items()}
        if len(ours) < len(actual):
            return False
        actual, expected = ours, {_json_key(key): value for key, value in expected.items()}
    return actual.keys() == expected.keys() and all(
        _same(actual[key], value, tolerance, style) for key, value in expected.items()
    )


def _json_key(key: object) -> object:
    """A key as JSON writes it."""
    match key:
        case bool():
            return "true" if key else "false"
        case None:
            return "null"
        case int() | float():
            return str(key) if not isinstance(key, int) or abs(key) < 10**4000 else key
    return key


def _same_unordered(
    actual: Sequence[Any], expected: Sequence[Any], same: Callable[[Any, Any], bool], rank: Callable[[Any], Any]
) -> bool:
    """Matches items one by one. Exact twins go first; what is left is put in the order of `rank`, in which the partner
    of an item is the first or nearly so, and each takes the first that is the same."""
    rest = list(expected)
    odd = []
    keyed: dict[str, list[int]] = {}
    for index, item in enumerate(rest):
        keyed.setdefault(_spelled(item), []).append(index)
    used: set[int] = set()
    for item in actual:
        twins = keyed.get(_spelled(item))
        if twins:
            used.add(twins.pop())
        else:
            odd.append(item)
    left = sorted((item for index, item in enumerate(rest) if index not in used), key=rank, reverse=True)
    return len(odd) == len(left) and _are_partners(sorted(odd, key=rank), left, same)


def _are_partners(odd: Sequence[Any], left: list[Any], same: Callable[[Any, Any], bool]) -> bool:
    """Whether each item finds a partner of its own; `left` is in the opposite order, and is used up."""
    comparisons = _COMPARISONS_FOR_EACH * len(odd) + _MORE_COMPARISONS
    for item in odd:
        for place in range(len(left) - 1, -1, -1):
            comparisons -= 1
            if comparisons < 0:
                return False
            if same(item, left[place]):
                del left[place]
                break
        else:
            return False
    return True


def _line_rank(line: str) -> Any:
    return _rank([float(word) if _number_text(word) else word for word in line.split()])


def _rank(value: Any, depth: int = 0) -> Any:
    """A place in an order of all values, in which those within a tolerance are neighbours: numbers first go by their
    first digits, so that they do not part lists that differ further on."""
    match value:
        case int() | float():
            number = _as_float(value)
            return (0, float(f"{number:.5g}"), number)
        case str():
            return (1, value)
        case list() | tuple() if depth < _RANKED_DEPTH:
            parts = [_rank(each, depth + 1) for each in value]
            return (2, [part[:2] for part in parts], parts)
    return (3, _spelled(value))


def _as_float(value: float) -> float:
    """For an order only: what is no number, or beyond all of them, goes to the end."""
    try:
        return math.inf if value != value else float(value)
    except OverflowError:
        return math.inf


def _spelled(item: object) -> str:
    try:
        return repr(item)
    except (ValueError, RecursionError):  # a number of more digits than Python writes
        return f"number {id(item)}"


_RANKED_DEPTH = 3
_COMPARISONS_FOR_EACH = 4
_MORE_COMPARISONS = 10_000
"""Lists whose items find no partners near their place are not the same: comparing all pairs would cost too much."""

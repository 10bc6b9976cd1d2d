"""Arguments that the other side changes: found there, taken over here into the objects that were given.

Place in the flow: peer → **changes**.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["Changes", "take_over"]

_MUTABLE = (list, dict, set, deque)


class Changes:
    """What becomes of arguments while they are in use."""

    def __init__(self, encoded: Callable[[object], str], given: tuple[list[Any], dict[str, Any]]) -> None:
        self._encoded = encoded
        self._given = given
        self._before = encoded(given) if _may_change(given) else None

    def found(self) -> object:
        """The arguments as they are now, where they are not as they were; else None."""
        if self._before is None or self._encoded(self._given) == self._before:
            return None
        return self._given

    def place_of(self, value: object) -> int | str | None:
        """Which argument a value is, where it is one that may change."""
        if not _can_change(value):
            return None
        places: list[tuple[int | str, object]] = [*enumerate(self._given[0]), *self._given[1].items()]
        return next((place for place, each in places if each is value), None)


def take_over(old: Any, new: Any) -> Any:
    """Make an object what another one is, keeping as many of its parts as can be; the object to use."""
    if old is new or type(old) is not type(new):
        return new
    if isinstance(old, list):
        kept = [take_over(one, other) for one, other in zip(old, new, strict=False)]
        old[:] = [*kept, *new[len(kept) :]]
        return old
    if isinstance(old, dict):
        items = {key: take_over(old[key], value) if key in old else value for key, value in new.items()}
        old.clear()
        old.update(items)
        return old
    if isinstance(old, set | deque):
        if old != new:
            old.clear()
            (old.update if isinstance(old, set) else old.extend)(new)
        return old
    if isinstance(old, tuple) and type(old) is tuple and len(old) == len(new):
        kept = [take_over(one, other) for one, other in zip(old, new, strict=True)]
        return old if all(one is other for one, other in zip(old, kept, strict=True)) else tuple(kept)
    if type(old).__name__ == "ndarray" and old.shape == new.shape:
        old[...] = new
        return old
    return old if not _can_change(new) and old == new else new


def _may_change(given: tuple[list[Any], dict[str, Any]]) -> bool:
    return any(map(_can_change, (*given[0], *given[1].values())))


def _can_change(value: object) -> bool:
    if isinstance(value, tuple):
        return any(map(_can_change, value))
    return isinstance(value, _MUTABLE) or type(value).__name__ == "ndarray"

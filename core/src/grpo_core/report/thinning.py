"""Fewer of many: evenly spread items, and runs of neighbours that become one point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

__all__ = ["evenly_spread", "neighbours"]

T = TypeVar("T")


def evenly_spread(items: Sequence[T], count: int) -> list[T]:
    """`count` of the items in order, first and last among them (for a count of 1: the first); all where they are no
    more."""
    if len(items) <= count:
        return list(items)
    if count <= 1:
        return list(items[:count])
    return [items[round(place * (len(items) - 1) / (count - 1))] for place in range(count)]


def neighbours(items: Sequence[T], most: int) -> list[Sequence[T]]:
    """At most `most` runs of neighbours, of equal size but for the last."""
    size = max(-(-len(items) // most), 1)
    return [items[start : start + size] for start in range(0, len(items), size)]

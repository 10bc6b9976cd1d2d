"""Fewer of many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grpo_core.report.thinning import evenly_spread, neighbours


def test_items_are_spread_by_hand_worked_places() -> None:
    assert evenly_spread(range(11), 3) == [0, 5, 10]
    assert evenly_spread("abc", 5) == ["a", "b", "c"]
    assert evenly_spread("abc", 1) == ["a"]
    assert evenly_spread("abc", 0) == []


@given(st.integers(0, 500), st.integers(2, 60))
def test_spread_items_are_in_order_each_once_with_both_ends(length: int, count: int) -> None:
    chosen = evenly_spread(range(length), count)
    assert len(chosen) == min(length, count)
    assert chosen == sorted(set(chosen))
    assert chosen[:1] == list(range(length))[:1]
    assert chosen[-1:] == list(range(length))[-1:]


@given(st.lists(st.integers(), max_size=300), st.integers(1, 50))
def test_runs_of_neighbours_hold_every_item_once_and_are_not_too_many(items: list[int], most: int) -> None:
    parts = neighbours(items, most)
    assert [item for part in parts for item in part] == items
    assert len(parts) <= most
    assert len({len(part) for part in parts[:-1]}) <= 1

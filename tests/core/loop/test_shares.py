"""Who has which completions: everything is dealt once, and balancing only makes ranks more alike."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.loop.shares import Piece, Shares, balance, deal

sizes = st.tuples(st.integers(1, 9), st.integers(2, 6), st.integers(1, 6))


def members(shares: Shares) -> list[tuple[int, int]]:
    return sorted((p.place, p.first + m) for share in shares for p in share for m in range(p.count))


def loads(shares: Shares, costs: list[list[int]], chunk: range) -> list[int]:
    return [
        sum(costs[p.place][p.first + m] for p in share if p.place in chunk for m in range(p.count)) for share in shares
    ]


def test_whole_groups_are_dealt_one_after_the_other() -> None:
    assert deal(3, 4, 2) == ((Piece(0, 0, 4), Piece(2, 0, 4)), (Piece(1, 0, 4),))


def test_fewer_groups_than_ranks_are_split_by_completions() -> None:
    assert deal(1, 5, 2) == ((Piece(0, 0, 2),), (Piece(0, 2, 3),))
    # Four groups on six ranks: the first two are shared by two ranks each.
    assert deal(4, 4, 6)[4:] == ((Piece(0, 2, 2),), (Piece(1, 2, 2),))


def test_more_ranks_than_completions_leave_some_without_any() -> None:
    assert [sum(piece.count for piece in share) for share in deal(1, 2, 4)] == [0, 1, 0, 1]


@given(size=sizes)
def test_every_completion_is_dealt_exactly_once(size: tuple[int, int, int]) -> None:
    groups, completions, ranks = size
    shares = deal(groups, completions, ranks)
    assert len(shares) == ranks
    assert members(shares) == [(group, member) for group in range(groups) for member in range(completions)]


def test_a_group_moves_to_the_rank_that_has_less() -> None:
    shares = deal(4, 2, 2)  # rank 0: groups 0 and 2, rank 1: groups 1 and 3
    costs = [[10, 10], [1, 1], [10, 10], [1, 1]]
    # 40 and 4: group 0 goes over, 20 and 24; then group 1 comes back, 22 and 22.
    assert balance(shares, costs, [range(4)]) == (
        (Piece(1, 0, 2), Piece(2, 0, 2)),
        (Piece(0, 0, 2), Piece(3, 0, 2)),
    )


def test_a_group_that_alone_has_work_is_split() -> None:
    costs = [[4, 4, 4, 4], [0, 0, 0, 0]]
    assert balance(deal(2, 4, 2), costs, [range(2)]) == ((Piece(0, 0, 2),), (Piece(0, 2, 2), Piece(1, 0, 4)))


def test_ranks_that_are_nearly_alike_move_nothing() -> None:
    shares = deal(2, 2, 2)
    assert balance(shares, [[100, 100], [98, 99]], [range(2)]) == shares


def test_parts_that_meet_again_become_one_piece() -> None:
    shares: Shares = ((Piece(0, 0, 2), Piece(1, 0, 4)), (Piece(0, 2, 2),))
    costs = [[1, 1, 1, 1], [2, 2, 0, 0]]
    assert balance(shares, costs, [range(2)]) == ((Piece(1, 0, 4),), (Piece(0, 0, 4),))


@settings(max_examples=200, deadline=None)
@given(size=sizes, data=st.data())
def test_balancing_loses_nothing_and_never_makes_the_slowest_rank_slower(
    size: tuple[int, int, int], data: st.DataObject
) -> None:
    groups, completions, ranks = size
    shares = deal(groups, completions, ranks)
    costs = data.draw(
        st.lists(
            st.lists(st.integers(0, 30), min_size=completions, max_size=completions), min_size=groups, max_size=groups
        )
    )
    cut = data.draw(st.integers(1, groups))
    chunks = [range(cut), range(cut, groups)] if cut < groups else [range(groups)]
    balanced = balance(shares, costs, chunks)
    assert members(balanced) == members(shares)
    for chunk in chunks:
        assert max(loads(balanced, costs, chunk)) <= max(loads(shares, costs, chunk))
        largest = max((cost for place in chunk for cost in costs[place]), default=0)
        now = loads(balanced, costs, chunk)
        tolerance = 0.05 * sum(now) / ranks
        # What remains is less than two completions, or what no contiguous part of a group can even out.
        assert max(now) - min(now) <= max(tolerance, 2 * largest)

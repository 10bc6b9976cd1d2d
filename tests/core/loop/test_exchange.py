"""Groups on their way between ranks: they arrive whole, in order, and nothing is sent that stays."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.loop.exchange import move
from grpo_core.loop.shares import Piece, Shares, balance, deal
from grpo_core.types import TrainGroup, TrainMember
from tests.thread_ranks import ThreadRanks, as_ranks


def group(piece: Piece) -> TrainGroup:
    """Each member is known by its tokens: (place, member)."""
    return TrainGroup(
        prompt_ids=(piece.place,),
        members=tuple(
            TrainMember(token_ids=(piece.place, piece.first + m), advantage=0.0, sampling_logprobs=(0.0, 0.0))
            for m in range(piece.count)
        ),
    )


def moved(before: Shares, after: Shares) -> list[tuple[TrainGroup, ...]]:
    def on_rank(ranks: ThreadRanks) -> tuple[TrainGroup, ...]:
        return move(ranks, {piece: group(piece) for piece in before[ranks.rank]}, before, after)

    return as_ranks(len(before), on_rank)


def test_a_whole_group_moves() -> None:
    before: Shares = ((Piece(0, 0, 2), Piece(1, 0, 2)), ())
    after: Shares = ((Piece(1, 0, 2),), (Piece(0, 0, 2),))
    assert moved(before, after) == [(group(Piece(1, 0, 2)),), (group(Piece(0, 0, 2)),)]


def test_a_group_is_put_together_from_parts_of_two_ranks() -> None:
    before: Shares = ((Piece(0, 0, 1),), (Piece(0, 1, 3),))
    after: Shares = ((), (Piece(0, 0, 4),))
    assert moved(before, after) == [(), (group(Piece(0, 0, 4)),)]


def test_where_nobody_moves_nobody_waits() -> None:
    shares = deal(4, 2, 2)

    def on_rank(ranks: ThreadRanks) -> list[str]:
        move(ranks, {piece: group(piece) for piece in shares[ranks.rank]}, shares, shares)
        return ranks.waits

    assert as_ranks(2, on_rank) == [[], []]


@settings(max_examples=25, deadline=None)
@given(groups=st.integers(1, 5), ranks=st.integers(2, 4), data=st.data())
def test_whatever_balancing_decides_arrives(groups: int, ranks: int, data: st.DataObject) -> None:
    before = deal(groups, 4, ranks)
    costs = data.draw(st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=groups, max_size=groups))
    after = balance(before, costs, [range(groups)])
    assert moved(before, after) == [tuple(group(piece) for piece in share) for share in after]


def test_the_helper_raises_what_a_rank_raised() -> None:
    def on_rank(ranks: ThreadRanks) -> None:
        if ranks.rank == 1:
            raise ZeroDivisionError
        ranks.gather(None)

    with pytest.raises(ZeroDivisionError):
        as_ranks(2, on_rank)

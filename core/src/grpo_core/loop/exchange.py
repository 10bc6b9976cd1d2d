"""Moves what is trained on to the ranks that train on it. Token ids travel here, and only with a group that balancing
gave to another rank than the one that drew it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from grpo_core.loop.shares import Piece, Shares
from grpo_core.ranks.ranks import Ranks
from grpo_core.types import TrainGroup

__all__ = ["move"]


def move(ranks: Ranks, groups: Mapping[Piece, TrainGroup], before: Shares, after: Shares) -> tuple[TrainGroup, ...]:
    """This rank's groups of `after`, in order; `groups` are those of `before` that it has."""
    if before == after:
        return tuple(groups[piece] for piece in after[ranks.rank])
    incoming = ranks.exchange([_cuts(groups, share) for share in after])
    cuts = [cut for part in incoming for cut in part]
    return tuple(_assembled(piece, cuts) for piece in after[ranks.rank])


Cut = tuple[int, int, TrainGroup]
"""Place of the group, its first member here, and the members from there on."""


def _cuts(groups: Mapping[Piece, TrainGroup], wanted: tuple[Piece, ...]) -> list[Cut]:
    """What of `groups` is among the pieces that a rank is to have."""
    cuts = []
    for have, group in groups.items():
        for want in wanted:
            first = max(have.first, want.first)
            end = min(have.first + have.count, want.first + want.count)
            if have.place == want.place and first < end:
                members = group.members[first - have.first : end - have.first]
                cuts.append((have.place, first, replace(group, members=members)))
    return cuts


def _assembled(piece: Piece, cuts: list[Cut]) -> TrainGroup:
    """A piece from the cuts that it consists of."""
    own = sorted(
        ((first, group) for place, first, group in cuts if place == piece.place and _within(piece, first)),
        key=lambda pair: pair[0],
    )
    return replace(own[0][1], members=tuple(member for _, group in own for member in group.members))


def _within(piece: Piece, member: int) -> bool:
    return piece.first <= member < piece.first + piece.count

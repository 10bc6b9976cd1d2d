"""Which rank has which completions of a step: dealt before the rollout, balanced by tokens before the update.

Whole groups, so that a prompt is prefilled and forwarded once; a group is split by completions only where groups are
fewer than ranks, or where one is so long that its rank would keep the others waiting. Pure functions of what every
rank knows, so every rank finds the same answer. With one rank it has everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

__all__ = ["Piece", "Shares", "balance", "deal"]

_TOLERANCE = 0.05
"""The difference between two ranks that is worth no move, as a share of their mean."""


@dataclass(frozen=True, slots=True, order=True)
class Piece:
    """A group of the step, or a part of one."""

    place: int
    """The group's place among those of the step, from 0."""
    first: int
    """Its first completion that belongs to the piece."""
    count: int
    """How many do."""


Shares = tuple[tuple[Piece, ...], ...]
"""Of each rank, its pieces in order."""
Costs = Sequence[Sequence[int]]
"""[groups][G] What a completion costs the rank that trains on it."""


def deal(groups: int, completions: int, ranks: int) -> Shares:
    """Give out `groups` groups of `completions` completions one after the other, so that neighbours, which are updated
    together, are on different ranks.

    Example: 3 groups of 4 on 2 ranks are groups 0 and 2, and group 1; 1 group of 4 is split into 2 and 2.
    """
    if groups >= ranks:
        return tuple(tuple(Piece(g, 0, completions) for g in range(rank, groups, ranks)) for rank in range(ranks))
    shares = []
    for rank in range(ranks):
        group, turn = rank % groups, rank // groups
        sharers = len(range(group, ranks, groups))
        first, end = completions * turn // sharers, completions * (turn + 1) // sharers
        shares.append((Piece(group, first, end - first),) if end > first else ())
    return tuple(shares)


def balance(shares: Shares, costs: Costs, chunks: Sequence[range]) -> Shares:
    """Even out the cost of every optimiser update; `chunks` are the places of the groups of each.

    A group moves only where that helps, and its tokens travel with it.
    """
    balanced: list[list[Piece]] = [[] for _ in shares]
    for chunk in chunks:
        parts = [[piece for piece in share if piece.place in chunk] for share in shares]
        _level(parts, costs)
        for mine, part in zip(balanced, parts, strict=True):
            mine.extend(part)
    return tuple(tuple(_joined(sorted(share))) for share in balanced)


def _level(parts: list[list[Piece]], costs: Costs) -> None:
    """Move pieces from the rank with most to the one with least, as long as that makes them more alike."""

    def cost(piece: Piece) -> int:
        return sum(costs[piece.place][piece.first : piece.first + piece.count])

    loads = [sum(map(cost, part)) for part in parts]
    while True:
        giver, taker = loads.index(max(loads)), loads.index(min(loads))
        gap = loads[giver] - loads[taker]
        if gap <= _TOLERANCE * sum(loads) / len(loads):
            return
        found = _whole(parts[giver], cost, gap) or _split(parts[giver], cost, gap)
        if found is None:
            return
        piece, moved = found
        parts[giver].remove(piece)
        if moved != piece:
            parts[giver].append(replace(piece, count=piece.count - moved.count))
        parts[taker].append(moved)
        loads[giver] -= cost(moved)
        loads[taker] += cost(moved)


def _whole(part: Sequence[Piece], cost: Callable[[Piece], int], gap: int) -> tuple[Piece, Piece] | None:
    """The piece that comes nearest to closing the gap without turning it round."""
    fitting = [piece for piece in part if 0 < cost(piece) < gap]
    best = min(fitting, key=lambda piece: (abs(2 * cost(piece) - gap), piece), default=None)
    return None if best is None else (best, best)


def _split(part: Sequence[Piece], cost: Callable[[Piece], int], gap: int) -> tuple[Piece, Piece] | None:
    """The last completions of the costliest piece, about half the gap."""
    piece = max(part, key=lambda piece: (cost(piece), piece))
    tails = [Piece(piece.place, piece.first + kept, piece.count - kept) for kept in range(1, piece.count)]
    fitting = [tail for tail in tails if 0 < cost(tail) < gap]
    best = min(fitting, key=lambda tail: (abs(2 * cost(tail) - gap), tail), default=None)
    return None if best is None else (piece, best)


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Neighbouring parts of a group as one."""
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if last is not None and (last.place, last.first + last.count) == (piece.place, piece.first):
            joined[-1] = replace(last, count=last.count + piece.count)
        else:
            joined.append(piece)
    return joined

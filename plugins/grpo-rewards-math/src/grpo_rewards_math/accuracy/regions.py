"""Sets of real numbers: intervals, their unions and inequalities in one variable, in one form.

(-2, 9), -2 < x < 9 and \\{x : ...\\} of the same are one region; its ends are compared exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import sympy

from grpo_rewards_math.accuracy.exact import same_trees
from grpo_rewards_math.accuracy.problems import UnreadableError
from grpo_rewards_math.accuracy.relations import side_tree
from grpo_rewards_math.accuracy.values import Group, Relation, Union, Value, Without

__all__ = ["Piece", "as_region", "same_region"]

_MOST_PIECES = 50


@dataclass(frozen=True, slots=True)
class Piece:
    """An interval, or a point when both ends are the same."""

    low: Any
    """A sympy constant."""
    high: Any
    low_closed: bool
    high_closed: bool


def as_region(value: Value) -> tuple[Piece, ...] | None:
    """The value as a union of pieces; None when it is no set of real numbers."""
    try:
        return _region(value)
    except UnreadableError:
        return None


def same_region(one: Sequence[Piece], other: Sequence[Piece]) -> bool:
    """Whether the pieces make the same set, in any order and however it is cut: [1, 2] and (2, 3) are [1, 3)."""
    first, second = _joined(one), _joined(other)
    return len(first) == len(second) and all(any(_same_piece(p, q) for q in second) for p in first)


def _joined(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """The same set in as few pieces as it has; as it is where an end is no number."""
    if not all(end.is_extended_real for piece in pieces for end in (piece.low, piece.high)):
        return pieces
    found: list[Piece] = []
    for piece in sorted(pieces, key=lambda piece: (_order(piece.low), not piece.low_closed)):
        last = found[-1] if found else None
        if last is None or not _touch(last, piece):
            found.append(piece)
        elif same_trees(last.high, piece.high):
            found[-1] = replace(last, high_closed=last.high_closed or piece.high_closed)
        elif _order(piece.high) > _order(last.high):
            found[-1] = replace(last, high=piece.high, high_closed=piece.high_closed)
    return found


def _touch(left: Piece, right: Piece) -> bool:
    """Whether nothing lies between a piece and one that does not begin before it."""
    if same_trees(left.high, right.low):
        return left.high_closed or right.low_closed
    return _order(right.low) < _order(left.high)


def _region(value: Value) -> tuple[Piece, ...] | None:
    match value:
        case Union(parts):
            regions = [_region(part) for part in parts]
            return None if None in regions else tuple(piece for region in regions for piece in region or ())
        case Group("sequence", (low, high), brackets):
            ends = side_tree(low), side_tree(high)
            return (Piece(*ends, brackets[0] == "[", brackets[1] == "]"),)
        case Group("set", items):
            return tuple(Piece(end, end, True, True) for end in map(side_tree, items))
        case Group("values", items) if all(isinstance(item, Relation | Union) for item in items):
            return _region(Union(items))
        case Relation():
            return _solved(value)
        case Without(whole, removed):
            left = _region(whole)
            for each in removed:
                gone = _region(each)
                if left is None or gone is None:
                    return None
                for piece in gone:
                    left = _overlap(left, _outside(piece))
                    if len(left) > _MOST_PIECES:
                        raise UnreadableError(f"a set of more than {_MOST_PIECES} pieces")
            return left
    return None


def _solved(relation: Relation) -> tuple[Piece, ...] | None:
    """A chain of inequalities in one variable, each of first degree, or of the absolute value of such a term."""
    pieces: tuple[Piece, ...] | None = None
    name = None
    for left, sign, right in zip(relation.sides, relation.signs, relation.sides[1:], strict=False):
        difference = side_tree(left) - side_tree(right)
        symbols = difference.free_symbols
        if len(symbols) != 1 or (name is not None and symbols != {name}):
            return None
        (name,) = symbols
        found = _where(difference, name, sign)
        if found is None:
            return None
        pieces = found if pieces is None else _overlap(pieces, found)
    return pieces


def _where(difference: Any, name: Any, sign: str) -> tuple[Piece, ...] | None:
    """For which values of the variable the difference stands to 0 as the sign says."""
    lengths = difference.atoms(sympy.Abs)
    if not lengths:
        return _half_lines(difference, name, sign)
    length = next(iter(lengths))
    stretch = sympy.Symbol("length")
    linear = sympy.expand(difference.xreplace({length: stretch}))
    factor, rest = linear.coeff(stretch, 1), linear.coeff(stretch, 0)
    if len(lengths) > 1 or linear.free_symbols != {stretch} or sympy.expand(linear - factor * stretch - rest) != 0:
        return None
    if not factor.is_real or factor == 0 or not rest.is_real:
        return None
    bound, inner = -rest / factor, length.args[0]
    if factor < 0:
        sign = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le"}.get(sign, sign)
    above, below = _half_lines(inner - bound, name, sign), _half_lines(-inner - bound, name, sign)
    if above is None or below is None or _order(bound) < 0:
        return None
    return _overlap(above, below) if sign in ("<", "\\le", "\\ne") else (*above, *below)


def _half_lines(difference: Any, name: Any, sign: str) -> tuple[Piece, ...] | None:
    slope = sympy.expand(difference).coeff(name, 1)
    rest = sympy.expand(difference) - slope * name
    if slope.free_symbols or name in sympy.expand(rest).free_symbols or slope == 0 or not slope.is_real:
        return None
    end = -rest / slope
    below = (sign in ("<", "\\le")) == bool(slope > 0)
    closed = sign in ("\\le", "\\ge", "=")
    if sign == "=":
        return (Piece(end, end, True, True),)
    low, high = Piece(-sympy.oo, end, False, closed), Piece(end, sympy.oo, closed, False)
    if sign == "\\ne":
        return (low, high)
    return (low,) if below else (high,)


def _overlap(one: Sequence[Piece], other: Sequence[Piece]) -> tuple[Piece, ...]:
    """What is in both."""
    found = []
    for first in one:
        for second in other:
            (low, low_closed), (high, high_closed) = _ends(first, second)
            if _order(low) < _order(high) or (same_trees(low, high) and low_closed and high_closed):
                found.append(Piece(low, high, low_closed, high_closed))
    return tuple(found)


def _ends(first: Piece, second: Piece) -> tuple[tuple[Any, bool], tuple[Any, bool]]:
    """The higher of the low ends and the lower of the high ones, each with whether it belongs to both."""
    lows = [(first.low, first.low_closed), (second.low, second.low_closed)]
    highs = [(first.high, first.high_closed), (second.high, second.high_closed)]
    if same_trees(first.low, second.low):
        lows = [(first.low, first.low_closed and second.low_closed)]
    if same_trees(first.high, second.high):
        highs = [(first.high, first.high_closed and second.high_closed)]
    return max(lows, key=lambda end: _order(end[0])), min(highs, key=lambda end: _order(end[0]))


def _outside(piece: Piece) -> tuple[Piece, ...]:
    """All reals but those in a piece."""
    sides = (
        Piece(-sympy.oo, piece.low, False, not piece.low_closed),
        Piece(piece.high, sympy.oo, not piece.high_closed, False),
    )
    return tuple(side for side in sides if side.low not in (sympy.oo,) and side.high not in (-sympy.oo,))


@lru_cache(maxsize=4_096)
def _order(end: Any) -> float:
    return float(sympy.N(end))


def _same_piece(one: Piece, other: Piece) -> bool:
    closed = (one.low_closed, one.high_closed) == (other.low_closed, other.high_closed)
    return closed and same_trees(one.low, other.low) and same_trees(one.high, other.high)

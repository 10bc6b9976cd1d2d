"""One Countdown problem with a solution: drawn at random by computing forward, so that it is solvable by construction.

The larger of two values stands first, so every value on the way is a non-negative integer (which loses no problem:
signs can always be moved outwards) and a solution has one way to be written. A division is only taken where nothing
remains. What is drawn may be of any size; `source` keeps the problems that the options ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

__all__ = ["Puzzle", "draw"]

_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2}
_NUMBER = 3

_Term = tuple[int, str, int]
"""A value, the expression that makes it, and how tightly that binds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Puzzle:
    """A problem and one of its solutions."""

    nums: tuple[int, ...]
    """The given numbers, in the order shown."""
    target: int
    """What to make of them."""
    solution: str
    """An expression with the target's value that uses each number once: `5*3+2`."""
    steps: tuple[str, ...]
    """The same as single operations, in an order that can be computed: `5*3=15`, `15+2=17`."""


def draw(random: Random, nums: Sequence[int], operations: str, *, in_order: bool = False) -> Puzzle | None:
    """Combine `nums` two at a time with random operations, in random order or from left to right; the target is what
    comes out. None: a division with a remainder was drawn.
    """
    terms: list[_Term] = [(value, str(value), _NUMBER) for value in nums]
    steps = []
    while len(terms) > 1:
        left = terms.pop(0 if in_order else _below(random, len(terms)))
        right = terms.pop(0 if in_order else _below(random, len(terms)))
        operation = operations[_below(random, len(operations))]
        if left[0] < right[0]:
            left, right = right, left
        value = _apply(operation, left[0], right[0])
        if value is None:
            return None
        steps.append(f"{left[0]}{operation}{right[0]}={value}")
        terms.insert(0, (value, _join(operation, left, right), _PRECEDENCE[operation]))
    target, solution, _ = terms[0]
    return Puzzle(nums=tuple(nums), target=target, solution=solution, steps=tuple(steps))


def _below(random: Random, count: int) -> int:
    """An index below `count`: several times faster than `randrange`, which matters here."""
    return int(random.random() * count)


def _apply(operation: str, left: int, right: int) -> int | None:
    if operation == "+":
        return left + right
    if operation == "-":
        return left - right
    if operation == "*":
        return left * right
    return left // right if right and left % right == 0 else None


def _join(operation: str, left: _Term, right: _Term) -> str:
    """Write the operation with only the parentheses that its value needs."""
    precedence = _PRECEDENCE[operation]
    tight = precedence + (operation in "-/")
    left_text = left[1] if left[2] >= precedence else f"({left[1]})"
    right_text = right[1] if right[2] >= tight else f"({right[1]})"
    return f"{left_text}{operation}{right_text}"

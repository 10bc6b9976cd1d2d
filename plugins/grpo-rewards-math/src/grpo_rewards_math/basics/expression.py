"""A calculation of whole numbers with + - * and at most one pair of parentheses, and the steps that solve it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

__all__ = ["Expression", "draw_expression"]

_APPLY = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}
_PARENTHESES_SHARE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """`7+3*4` is the numbers 7, 3, 4 with the operations `+*`."""

    numbers: tuple[int, ...]
    """At least two."""
    operations: str
    """What stands between them."""
    inside: int | None = None
    """The operation that stands in parentheses with its two numbers, counted from 0."""

    @property
    def text(self) -> str:
        """As it is written, without blanks."""
        shown = [str(number) for number in self.numbers]
        if self.inside is not None:
            shown[self.inside] = "(" + shown[self.inside]
            shown[self.inside + 1] += ")"
        return shown[0] + "".join(map(str.__add__, self.operations, shown[1:]))

    def solve(self) -> tuple[tuple[str, ...], int]:
        """The single steps in the order of precedence (`3*4=12`, `7+12=19`), and the result."""
        return self._worked(sorted(range(len(self.operations)), key=self._precedence))

    def from_left_to_right(self) -> tuple[tuple[str, ...], int]:
        """What comes out when nothing takes precedence: the usual mistake."""
        return self._worked(range(len(self.operations)))

    def _precedence(self, operation: int) -> int:
        return 0 if operation == self.inside else 1 if self.operations[operation] == "*" else 2

    def _worked(self, order: Sequence[int]) -> tuple[tuple[str, ...], int]:
        """Carry out the operations in an order; each takes what has become of the numbers beside it."""
        groups = [[number] for number in range(len(self.numbers))]  # numbers that are one value by now
        values, steps, result = list(self.numbers), [], self.numbers[0]
        for operation in order:
            left, right = groups[operation], groups[operation + 1]
            first, second = values[left[0]], values[right[0]]
            sign = self.operations[operation]
            result = _APPLY[sign](first, second)
            steps.append(f"{first}{sign}{second}={result}")
            left += right
            for member in left:
                groups[member], values[member] = left, result
        return tuple(steps), result


def draw_expression(random: Random, *, numbers: int, max_value: int) -> Expression:
    """An expression of so many numbers from 1 to `max_value`; about a third have parentheses that matter."""
    drawn = tuple(random.randint(1, max_value) for _ in range(numbers))
    operations = "".join(random.choice("+-*") for _ in range(numbers - 1))
    plain = Expression(numbers=drawn, operations=operations)
    if random.random() >= _PARENTHESES_SHARE:
        return plain
    bracketed = Expression(numbers=drawn, operations=operations, inside=random.randrange(numbers - 1))
    return plain if bracketed.solve() == plain.solve() else bracketed

"""What a text can state: numbers and expressions, words, groups of values, relations, unions, grids.

Place in the flow: canonical text → **value** → comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Literal

__all__ = [
    "Choice",
    "Expression",
    "Family",
    "Grid",
    "Group",
    "Relation",
    "Union",
    "Value",
    "Without",
    "Words",
    "expressions",
]


@dataclass(frozen=True, slots=True)
class Expression:
    """A number, or an expression with variables."""

    text: str
    """Canonical LaTeX without its unit."""
    exact: Fraction | None
    """The value where it is plain rational arithmetic."""
    unit: str | None = None
    """One spelling, see `units`."""


@dataclass(frozen=True, slots=True)
class Words:
    """An answer in words, compared by its letters."""

    text: str
    """Lower case, single blanks, no punctuation."""
    is_product: bool = False
    """Whether it may be a product of variables: two or three small letters in mathematics, not in text."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A letter out of a list of options, and what the option says."""

    letter: str
    content: Value | None


@dataclass(frozen=True, slots=True)
class Group:
    """Several values together."""

    kind: Literal["values", "set", "sequence"]
    """`values`: written one after another; `set`: in braces; `sequence`: in brackets, where the order counts."""
    items: tuple[Value, ...]
    brackets: str = ""
    """Of a sequence, and of assignments that stood in tuples: `()`, `[]`, `(]`, `[)`, and `::` for a ratio, as
    multiples of its first part.
    Two values in brackets may be an interval."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A chain like 1 < x <= 2 or y = 3x."""

    sides: tuple[Value, ...]
    signs: tuple[str, ...]
    """One of = < > \\le \\ge \\ne between two sides."""


@dataclass(frozen=True, slots=True)
class Union:
    """Parts joined by \\cup."""

    parts: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Without:
    """A set without others: R \\setminus \\{0\\}."""

    whole: Value
    removed: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """The numbers that forms give for all integers: k\\pi, k in Z."""

    forms: tuple[Expression, ...]
    """Each with the parameter `families.PARAMETER`."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A matrix or a vector."""

    rows: tuple[tuple[Value, ...], ...]


Value = Expression | Words | Choice | Group | Relation | Union | Without | Family | Grid


def expressions(value: Value) -> Iterator[Expression]:
    """Every expression in a value. Words, and what an option says beside its letter, have none."""
    match value:
        case Expression():
            yield value
        case Family(forms=forms):
            yield from forms
        case Group(items=parts) | Relation(sides=parts) | Union(parts=parts):
            yield from chain.from_iterable(map(expressions, parts))
        case Without(whole=whole, removed=removed):
            yield from chain.from_iterable(map(expressions, (whole, *removed)))
        case Grid(rows=rows):
            yield from chain.from_iterable(map(expressions, chain.from_iterable(rows)))

"""The single things that functions of `code_basics` do: in words, and as a Python expression of `x`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["OPERATIONS", "Operation", "Type"]

Type = Literal["list", "string", "number", "truth"]
"""Of the value before and after: whole numbers in a list, a text, one whole number, True or False."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One step, which turns a value into another."""

    takes: Type
    gives: Type
    words: str
    """An instruction; {n} stands for a number of the step."""
    code: str
    """A Python expression of `x` with the same {n}."""
    numbers: tuple[int, int] | None = None
    """The smallest and the largest n; None: it has none."""


def _list(words: str, code: str, *, gives: Type = "list", n: tuple[int, int] | None = None) -> Operation:
    return Operation(takes="list", gives=gives, words=words, code=code, numbers=n)


def _text(words: str, code: str, *, gives: Type = "string", n: tuple[int, int] | None = None) -> Operation:
    return Operation(takes="string", gives=gives, words=words, code=code, numbers=n)


def _number(words: str, code: str, *, gives: Type = "number", n: tuple[int, int] | None = None) -> Operation:
    return Operation(takes="number", gives=gives, words=words, code=code, numbers=n)


OPERATIONS: tuple[Operation, ...] = (
    _list("add {n} to each element", "[v + {n} for v in x]", n=(1, 9)),
    _list("subtract {n} from each element", "[v - {n} for v in x]", n=(1, 9)),
    _list("multiply each element by {n}", "[v * {n} for v in x]", n=(2, 9)),
    _list("square each element", "[v * v for v in x]"),
    _list("keep the even elements", "[v for v in x if v % 2 == 0]"),
    _list("keep the odd elements", "[v for v in x if v % 2 == 1]"),
    _list("keep the elements above {n}", "[v for v in x if v > {n}]", n=(0, 9)),
    _list("keep the elements below {n}", "[v for v in x if v < {n}]", n=(0, 9)),
    _list("keep the first {n} elements", "x[:{n}]", n=(2, 4)),
    _list("drop the first {n} elements", "x[{n}:]", n=(1, 4)),
    _list("sort in ascending order", "sorted(x)"),
    _list("sort in descending order", "sorted(x, reverse=True)"),
    _list("reverse the order", "x[::-1]"),
    _list("keep each element once", "list(dict.fromkeys(x))"),
    _list("take the sum", "sum(x)", gives="number"),
    _list("take the largest, or 0 if there is none", "max(x, default=0)", gives="number"),
    _list("take the smallest, or 0 if there is none", "min(x, default=0)", gives="number"),
    _list("count the elements", "len(x)", gives="number"),
    _list("count the elements equal to {n}", "x.count({n})", gives="number", n=(0, 9)),
    _text("write it in upper case", "x.upper()"),
    _text("write it in lower case", "x.lower()"),
    _text("reverse the text", "x[::-1]"),
    _text("keep the first {n} characters", "x[:{n}]", n=(2, 6)),
    _text("drop the first {n} characters", "x[{n}:]", n=(1, 6)),
    _text("repeat it {n} times", "x * {n}", n=(2, 4)),
    _text("remove the vowels", "''.join(c for c in x if c not in 'aeiouAEIOU')"),
    _text("keep the vowels", "''.join(c for c in x if c in 'aeiouAEIOU')"),
    _text("remove the blanks", "x.replace(' ', '')"),
    _text("put the words in reverse order", "' '.join(x.split()[::-1])"),
    _text("put the words in alphabetical order", "' '.join(sorted(x.split()))"),
    _text("count the characters", "len(x)", gives="number"),
    _text("count the words", "len(x.split())", gives="number"),
    _text("count the vowels", "sum(c in 'aeiouAEIOU' for c in x)", gives="number"),
    _text("say whether it reads the same backwards", "x == x[::-1]", gives="truth"),
    _number("add {n}", "x + {n}", n=(1, 20)),
    _number("subtract {n}", "x - {n}", n=(1, 20)),
    _number("multiply by {n}", "x * {n}", n=(2, 9)),
    _number("divide by {n}, rounding down", "x // {n}", n=(2, 9)),
    _number("take the remainder of division by {n}", "x % {n}", n=(2, 9)),
    _number("square it", "x * x"),
    _number("change its sign", "-x"),
    _number("take its absolute value", "abs(x)"),
    _number("take the larger of it and {n}", "max(x, {n})", n=(1, 20)),
    _number("take the smaller of it and {n}", "min(x, {n})", n=(1, 20)),
    _number("take the sum of its digits", "sum(map(int, str(abs(x))))"),
    _number("say whether it is even", "x % 2 == 0", gives="truth"),
    _number("say whether it is above {n}", "x > {n}", gives="truth", n=(1, 20)),
)

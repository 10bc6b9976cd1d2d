"""Arithmetic as a model writes it: + - * / and parentheses over numbers, evaluated exactly.

A parser of its own, for `eval` would run what the model writes, and powers would never end. Length and nesting are
bounded, and so is the number of operations on fractions. Signs and LaTeX that mean the same four operations are
read as these; anything else is not an expression.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Expression", "Literal", "NotAnExpressionError", "parse"]

_MAX_CHARACTERS = 100_000
_MAX_DIGITS = 400
_MAX_DEPTH = 50

_SIGNS = str.maketrans("×·⋅∙•∗✕✖÷∕➗−–－➖＋➕＊／（）＝", "********///----++*/()=")
_LATEX = (
    (re.compile(r"\\(times|cdot|ast)(?![a-zA-Z])"), "*"),
    (re.compile(r"\\div(?![a-zA-Z])"), "/"),
    (re.compile(r"\\[dt]frac(?![a-zA-Z])"), r"\\frac"),
    # Layout becomes a blank, never nothing: 2$5 must not turn into 25.
    (re.compile(r"\\(left|right|quad)(?![a-zA-Z])|\\[,;:! ()\[\]]|\$"), " "),
)
_TOKEN = re.compile(r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]+)?)|(?P<sign>\\frac|\\boxed|[-+*/(){}]))")


class NotAnExpressionError(ValueError):
    """The text is no expression of the four operations, or has no value."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A number as it is written."""

    value: Fraction
    """Without its sign."""
    signed: bool
    """Whether a minus stands directly before it, as a sign: it may be read as part of the number."""


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression's value and what it is made of."""

    value: Fraction
    literals: tuple[Literal, ...]
    """In the order of the text."""


def plain(text: str) -> str:
    """The text with the signs and the LaTeX of the four operations in their ASCII form, and without a box around it."""
    if len(text) > _MAX_CHARACTERS:
        raise NotAnExpressionError(f"longer than {_MAX_CHARACTERS} characters")
    text = text.translate(_SIGNS)
    for pattern, replacement in _LATEX:
        text = pattern.sub(replacement, text)
    return _unboxed(text.strip())


def parse(text: str, *, max_literals: int) -> Expression:
    """Read and evaluate `plain` text of at most so many numbers; raises `NotAnExpressionError`."""
    parser = _Parser(text, max_literals)
    value = parser.sum()
    parser.expect(None)
    return Expression(value, tuple(parser.literals))


class _Parser:
    """Recursive descent over tokens; values are computed on the way.

    sum = product {("+" | "-") product};  product = factor {("*" | "/") factor};  factor = {"+" | "-"} atom;
    atom = number | "(" sum ")" | "\\boxed" "{" sum "}" | "\\frac" "{" sum "}" "{" sum "}"
    """

    def __init__(self, text: str, max_literals: int) -> None:
        self.tokens = _tokens(text)
        self.max_literals = max_literals
        self.position = 0
        self.depth = 0
        self.literals: list[Literal] = []

    def sum(self) -> Fraction:
        value = self.product()
        while (sign := self.accept("+", "-")) is not None:
            term = self.product()
            value = value + term if sign == "+" else value - term
        return value

    def product(self) -> Fraction:
        value = self.factor()
        while (sign := self.accept("*", "/")) is not None:
            factor = self.factor()
            value = value * factor if sign == "*" else _quotient(value, factor)
        return value

    def factor(self) -> Fraction:
        minuses, last = 0, None
        while (sign := self.accept("+", "-")) is not None:
            minuses, last = minuses + (sign == "-"), sign
        value = self.atom(signed=last == "-")
        return -value if minuses % 2 else value

    def atom(self, *, signed: bool) -> Fraction:
        token = self.peek()
        if token is not None and token[0].isdigit():
            self.position += 1
            return self.literal(token, signed)
        if self.accept("("):
            return self.inside(")")
        if self.accept("\\boxed"):
            self.expect("{")
            return self.inside("}")
        self.expect("\\frac")
        self.expect("{")
        numerator = self.inside("}")
        self.expect("{")
        return _quotient(numerator, self.inside("}"))

    def literal(self, token: str, signed: bool) -> Fraction:
        if len(self.literals) >= self.max_literals or len(token) > _MAX_DIGITS:
            raise NotAnExpressionError(f"more than {self.max_literals} numbers, or {_MAX_DIGITS} digits")
        self.literals.append(Literal(Fraction(token), signed))
        return self.literals[-1].value

    def inside(self, closing: str) -> Fraction:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise NotAnExpressionError(f"nested deeper than {_MAX_DEPTH}")
        value = self.sum()
        self.expect(closing)
        self.depth -= 1
        return value

    def peek(self) -> str | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def accept(self, *wanted: str) -> str | None:
        token = self.peek()
        if token is None or token not in wanted:
            return None
        self.position += 1
        return token

    def expect(self, wanted: str | None) -> None:
        if self.peek() != wanted:
            raise NotAnExpressionError(f"{self.peek() or 'the end'} where {wanted or 'the end'} should be")
        self.position += 1


def _tokens(text: str) -> list[str]:
    tokens, position, text = [], 0, text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotAnExpressionError(f"{text[position : position + 10]!r} is no number and no operation")
        tokens.append(match["number"] or match["sign"])
        position = match.end()
    return tokens


def _quotient(numerator: Fraction, denominator: Fraction) -> Fraction:
    if denominator == 0:
        raise NotAnExpressionError("division by zero")
    return numerator / denominator


def _unboxed(text: str) -> str:
    """Without a `\\boxed{…}` that holds all of the text."""
    if not (text.startswith("\\boxed{") and text.endswith("}")):
        return text
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if depth == 0 and character == "}":
            return text.removeprefix("\\boxed{")[:-1].strip() if position == len(text) - 1 else text
    return text

"""The grammar of arithmetic in canonical text; what numbers are, and what their operations give, is for subclasses.

sum = product {("+" | "-") product};  product = signed {("\\cdot" | "/") signed | power};
signed = {"+" | "-"} power;  power = postfix ["^" ["-"] power];  postfix = atom {"!" | "%"};
atom = number | name | "(" sum ")" | "{" sum "}" | "\\frac" group group | "\\binom" group group
     | "\\sqrt" ["[" sum "]"] group

A product without a sign after a division (1/2x) has no one meaning and is not of this grammar.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from grpo_rewards_math.accuracy.problems import NotRationalError, TooLargeError

__all__ = ["Grammar"]

T = TypeVar("T")

_MAX_DEPTH = 40
_SIGNS = r"\\frac(?![a-zA-Z])|\\binom(?![a-zA-Z])|\\sqrt(?![a-zA-Z])|\\cdot(?![a-zA-Z])|[-+/^!%(){}\[\]]"
_OPENS = ("(", "{", "\\frac", "\\binom", "\\sqrt")


class Grammar(ABC, Generic[T]):
    """A parser by recursive descent that computes values on the way. One object a text."""

    names = r"(?!)"
    """Pattern of the names that stand for values."""

    def __init__(self, text: str) -> None:
        """Raises `NotRationalError` for signs that are not of the grammar."""
        self._tokens = self._split(text)
        self._position = 0
        self._depth = 0

    def value(self) -> T:
        """The value of the whole text.

        Raises `NotRationalError` when it is not of this grammar, `UnreadableError` when it has no value, and
        `TooLargeError` when computing it would take too much.
        """
        value = self._sum()
        if self._position < len(self._tokens):
            raise NotRationalError("signs after the end")
        return value

    @abstractmethod
    def number(self, digits: str) -> T:
        """An integer or a decimal."""

    def name(self, name: str) -> T:
        """A name that `names` matches."""
        raise NotRationalError(name)

    @abstractmethod
    def added(self, one: T, other: T) -> T:
        """one + other."""

    @abstractmethod
    def negative(self, value: T) -> T:
        """-value."""

    @abstractmethod
    def multiplied(self, one: T, other: T) -> T:
        """one * other."""

    @abstractmethod
    def divided(self, numerator: T, denominator: T) -> T:
        """numerator / denominator."""

    @abstractmethod
    def raised(self, base: T, exponent: T) -> T:
        """base ^ exponent."""

    @abstractmethod
    def root(self, value: T, degree: T) -> T:
        """The real root where there is one."""

    @abstractmethod
    def factorial(self, value: T) -> T:
        """value!"""

    @abstractmethod
    def binomial(self, n: T, k: T) -> T:
        """n choose k."""

    def _split(self, text: str) -> list[str]:
        pattern = re.compile(rf"\s*(?:(?P<number>\d+\.?\d*|\.\d+)|(?P<sign>{_SIGNS})|(?P<name>{self.names}))")
        tokens, position, text = [], 0, text.rstrip()
        while position < len(text):
            match = pattern.match(text, position)
            if match is None:
                raise NotRationalError(text)
            tokens.append(match["number"] or match["sign"] or match["name"])
            position = match.end()
        return tokens

    def _sum(self) -> T:
        value = self._product()
        while (sign := self._accept("+", "-")) is not None:
            term = self._product()
            value = self.added(value, term if sign == "+" else self.negative(term))
        return value

    def _product(self) -> T:
        value, divides = self._signed(), False
        while True:
            if (sign := self._accept("\\cdot", "/")) is not None:
                factor, divides = self._signed(), sign == "/"
                value = self.divided(value, factor) if divides else self.multiplied(value, factor)
            elif self._begins_factor():
                if divides:
                    raise NotRationalError("a product without a sign after a division")
                value = self.multiplied(value, self._power())
            else:
                return value

    def _begins_factor(self) -> bool:
        token = self._peek()
        return token is not None and (token in _OPENS or re.fullmatch(self.names, token) is not None)

    def _signed(self) -> T:
        minus = False
        while (sign := self._accept("+", "-")) is not None:
            minus ^= sign == "-"
        value = self._power()
        return self.negative(value) if minus else value

    def _power(self) -> T:
        base = self._postfix()
        if self._accept("^") is None:
            return base
        minus = self._accept("-") is not None
        exponent = self._power()
        return self.raised(base, self.negative(exponent) if minus else exponent)

    def _postfix(self) -> T:
        value = self._atom()
        while (sign := self._accept("!", "%")) is not None:
            value = self.factorial(value) if sign == "!" else self.divided(value, self.number("100"))
        return value

    def _atom(self) -> T:
        token = self._peek()
        if token is None:
            raise NotRationalError("an end where a number should be")
        self._position += 1
        if token[0].isdigit() or token[0] == ".":
            return self.number(token)
        match token:
            case "(":
                return self._inside(")")
            case "{":
                return self._inside("}")
            case "\\frac":
                return self.divided(self._group(), self._group())
            case "\\binom":
                return self.binomial(self._group(), self._group())
            case "\\sqrt":
                degree = self._inside("]") if self._accept("[") else self.number("2")
                return self.root(self._group(), degree)
        if re.fullmatch(self.names, token):
            return self.name(token)
        raise NotRationalError(token)

    def _group(self) -> T:
        if self._accept("{") is None:
            raise NotRationalError("an argument without braces")
        return self._inside("}")

    def _inside(self, closing: str) -> T:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise TooLargeError(f"nested deeper than {_MAX_DEPTH}")
        value = self._sum()
        if self._accept(closing) is None:
            raise NotRationalError(f"no {closing}")
        self._depth -= 1
        return value

    def _peek(self) -> str | None:
        return self._tokens[self._position] if self._position < len(self._tokens) else None

    def _accept(self, *wanted: str) -> str | None:
        token = self._peek()
        if token is None or token not in wanted:
            return None
        self._position += 1
        return token

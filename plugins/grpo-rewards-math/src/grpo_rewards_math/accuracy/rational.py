"""Rational arithmetic as a model or a dataset writes it, evaluated exactly: the quick path of most answers.

+ - * / ^ ! over integers and decimals, parentheses, `\\frac`, `\\binom`, `\\sqrt` of perfect powers, percentages.
Sizes are bounded before anything is computed. What is not of this kind is left to math-verify.

Place in the flow: canonical text → **fraction** → comparison.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

from grpo_rewards_math.accuracy.problems import NotRationalError, TooLargeError, UnreadableError

__all__ = ["evaluate", "has_digits_only"]

_MAX_BITS = 200_000
_MAX_DEPTH = 40
_MAX_FACTORIAL = 5_000
_MAX_BINOMIAL = 20_000
_TOKEN = re.compile(r"\s*(?:(?P<number>\d+\.?\d*|\.\d+)|(?P<sign>\\frac|\\binom|\\sqrt|\\cdot|[-+/^!%(){}\[\]]))")


def evaluate(text: str) -> Fraction:
    """The value of a canonical text.

    Raises `NotRationalError` when it is not of this kind, `UnreadableError` when it has no value (0/0), and
    `TooLargeError` when computing it would take too much.
    """
    parser = _Parser(_tokens(text))
    value = parser.sum()
    if parser.position < len(parser.tokens):
        raise NotRationalError(text)
    return value


def has_digits_only(text: str) -> bool:
    """Whether the text is an integer or a decimal, with a sign or without."""
    return re.fullmatch(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)", text) is not None


class _Parser:
    """Recursive descent; values are computed on the way.

    sum = product {("+" | "-") product};  product = signed {("\\cdot" | "/") signed | power};
    signed = {"+" | "-"} power;  power = postfix ["^" exponent];  postfix = atom {"!" | "%"}
    """

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.position = 0
        self.depth = 0

    def sum(self) -> Fraction:
        value = self.product()
        while (sign := self.accept("+", "-")) is not None:
            term = self.product()
            value = _bounded(value + term if sign == "+" else value - term)
        return value

    def product(self) -> Fraction:
        value = self.signed()
        while True:
            if (sign := self.accept("\\cdot", "/")) is not None:
                factor = self.signed()
                value = _bounded(value * factor if sign == "\\cdot" else _quotient(value, factor))
            elif self.peek() in ("(", "{", "\\frac", "\\binom", "\\sqrt"):
                value = _bounded(value * self.power())
            else:
                return value

    def signed(self) -> Fraction:
        minus = False
        while (sign := self.accept("+", "-")) is not None:
            minus ^= sign == "-"
        value = self.power()
        return -value if minus else value

    def power(self) -> Fraction:
        base = self.postfix()
        if self.accept("^") is None:
            return base
        return _power(base, self.exponent())

    def exponent(self) -> Fraction:
        """A group, or a single digit as TeX reads it: 2^10 without braces means ten to whoever writes it."""
        minus = self.accept("-") is not None
        value = self.power()
        return -value if minus else value

    def postfix(self) -> Fraction:
        value = self.atom()
        while (sign := self.accept("!", "%")) is not None:
            value = _factorial(value) if sign == "!" else value / 100
        return value

    def atom(self) -> Fraction:
        token = self.peek()
        if token is None:
            raise NotRationalError("an end where a number should be")
        self.position += 1
        if token[0].isdigit() or token[0] == ".":
            if len(token) * 3.33 > _MAX_BITS:
                raise TooLargeError(f"a number of {len(token)} digits")
            return Fraction(token if token[0] != "." else "0" + token)
        match token:
            case "(":
                return self.inside(")")
            case "{":
                return self.inside("}")
            case "\\frac":
                return _quotient(self.group(), self.group())
            case "\\binom":
                return _binomial(self.group(), self.group())
            case "\\sqrt":
                degree = self.inside("]") if self.accept("[") else Fraction(2)
                return _root(self.group(), degree)
        raise NotRationalError(token)

    def group(self) -> Fraction:
        if self.accept("{") is None:
            raise NotRationalError("an argument without braces")
        return self.inside("}")

    def inside(self, closing: str) -> Fraction:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise TooLargeError(f"nested deeper than {_MAX_DEPTH}")
        value = self.sum()
        if self.accept(closing) is None:
            raise NotRationalError(f"no {closing}")
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


def _tokens(text: str) -> list[str]:
    tokens, position, text = [], 0, text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotRationalError(text)
        tokens.append(match["number"] or match["sign"])
        position = match.end()
    return tokens


def _bounded(value: Fraction) -> Fraction:
    if value.numerator.bit_length() + value.denominator.bit_length() > _MAX_BITS:
        raise TooLargeError(f"a number of more than {_MAX_BITS} bits")
    return value


def _quotient(numerator: Fraction, denominator: Fraction) -> Fraction:
    if denominator == 0:
        raise UnreadableError("division by zero")
    return _bounded(numerator / denominator)


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        return _power(_root(base, Fraction(exponent.denominator)), Fraction(exponent.numerator))
    if base == 0 and exponent <= 0:
        raise UnreadableError("0 to a power of at most 0")
    bits = base.numerator.bit_length() + base.denominator.bit_length() - 1
    if abs(base) != 1 and abs(exponent) * bits > _MAX_BITS:
        raise TooLargeError(f"a power of more than {_MAX_BITS} bits")
    if abs(base) == 1:
        exponent = Fraction(exponent.numerator % 2)
    power: Fraction = base ** int(exponent)
    return power


def _root(value: Fraction, degree: Fraction) -> Fraction:
    """The real root of a perfect power."""
    if degree.denominator != 1 or not 1 <= degree <= 64:
        raise NotRationalError("a root that is not rational")
    n = int(degree)
    if value < 0 and n % 2 == 0:
        raise NotRationalError("a root that is not real")
    parts = [_integer_root(part, n) for part in (abs(value.numerator), value.denominator)]
    root = Fraction(*parts)
    return -root if value < 0 else root


def _integer_root(value: int, n: int) -> int:
    if n == 2:
        root = math.isqrt(value)
    else:
        low, high = 0, 1 << (value.bit_length() // n + 1)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**n <= value else (low, middle - 1)
        root = low
    if root**n != value:
        raise NotRationalError("a root that is not rational")
    return root


def _factorial(value: Fraction) -> Fraction:
    if value.denominator != 1 or value < 0:
        raise NotRationalError("the factorial of no natural number")
    if value > _MAX_FACTORIAL:
        raise TooLargeError(f"the factorial of more than {_MAX_FACTORIAL}")
    return Fraction(math.factorial(int(value)))


def _binomial(n: Fraction, k: Fraction) -> Fraction:
    if n.denominator != 1 or k.denominator != 1 or n < 0 or k < 0:
        raise NotRationalError("a binomial coefficient of no natural numbers")
    if n > _MAX_BINOMIAL:
        raise TooLargeError(f"a binomial coefficient of more than {_MAX_BINOMIAL}")
    return Fraction(math.comb(int(n), int(k)))

"""Rational arithmetic as a model or a dataset writes it, evaluated exactly: the quick path of most answers.

+ - * / ^ ! over integers and decimals, parentheses, `\\frac`, `\\binom`, `\\sqrt` of perfect powers, percentages.
Sizes are bounded before anything is computed. What is not of this kind is left to math-verify.

Place in the flow: canonical text → **fraction** → comparison.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

from grpo_rewards_math.accuracy.grammar import Grammar
from grpo_rewards_math.accuracy.problems import NotRationalError, TooLargeError, UnreadableError

__all__ = ["evaluate", "has_digits_only"]

_MAX_BITS = 200_000
_MAX_FACTORIAL = 5_000
_MAX_BINOMIAL = 20_000
_MAX_DEGREE = 64


def evaluate(text: str) -> Fraction:
    """The value of a canonical text.

    Raises `NotRationalError` when it is not of this kind, `UnreadableError` when it has no value (0/0), and
    `TooLargeError` when computing it would take too much.
    """
    return _Fractions(text).value()


def has_digits_only(text: str) -> bool:
    """Whether the text is an integer or a decimal, with a sign or without."""
    return re.fullmatch(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)", text) is not None


class _Fractions(Grammar[Fraction]):
    def number(self, digits: str) -> Fraction:
        if len(digits) * 3.33 > _MAX_BITS:
            raise TooLargeError(f"a number of {len(digits)} digits")
        return Fraction(digits if digits[0] != "." else "0" + digits)

    def added(self, one: Fraction, other: Fraction) -> Fraction:
        return _bounded(one + other)

    def negative(self, value: Fraction) -> Fraction:
        return -value

    def multiplied(self, one: Fraction, other: Fraction) -> Fraction:
        return _bounded(one * other)

    def divided(self, numerator: Fraction, denominator: Fraction) -> Fraction:
        if denominator == 0:
            raise UnreadableError("division by zero")
        return _bounded(numerator / denominator)

    def raised(self, base: Fraction, exponent: Fraction) -> Fraction:
        if exponent.denominator != 1:
            return self.raised(self.root(base, Fraction(exponent.denominator)), Fraction(exponent.numerator))
        if base == 0 and exponent <= 0:
            raise UnreadableError("0 to a power of at most 0")
        if abs(base) == 1:
            return base if exponent.numerator % 2 else Fraction(1)
        bits = base.numerator.bit_length() + base.denominator.bit_length() - 1
        if abs(exponent) * bits > _MAX_BITS:
            raise TooLargeError(f"a power of more than {_MAX_BITS} bits")
        power: Fraction = base ** int(exponent)
        return power

    def root(self, value: Fraction, degree: Fraction) -> Fraction:
        """The real root of a perfect power."""
        if degree.denominator != 1 or not 1 <= degree <= _MAX_DEGREE:
            raise NotRationalError("a root that is not rational")
        n = int(degree)
        if value < 0 and n % 2 == 0:
            raise NotRationalError("a root that is not real")
        root = Fraction(_integer_root(abs(value.numerator), n), _integer_root(value.denominator, n))
        return -root if value < 0 else root

    def factorial(self, value: Fraction) -> Fraction:
        if value.denominator != 1 or value < 0:
            raise NotRationalError("the factorial of no natural number")
        if value > _MAX_FACTORIAL:
            raise TooLargeError(f"the factorial of more than {_MAX_FACTORIAL}")
        return Fraction(math.factorial(int(value)))

    def binomial(self, n: Fraction, k: Fraction) -> Fraction:
        if n.denominator != 1 or k.denominator != 1 or n < 0 or k < 0:
            raise NotRationalError("a binomial coefficient of no natural numbers")
        if n > _MAX_BINOMIAL:
            raise TooLargeError(f"a binomial coefficient of more than {_MAX_BINOMIAL}")
        return Fraction(math.comb(int(n), int(k)))


def _bounded(value: Fraction) -> Fraction:
    if value.numerator.bit_length() + value.denominator.bit_length() > _MAX_BITS:
        raise TooLargeError(f"a number of more than {_MAX_BITS} bits")
    return value


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

"""Polynomials, fractions, roots and multiples of pi, e and i, read into sympy trees without math-verify's parser.

That parser takes milliseconds where this takes microseconds, and most formulas are of this kind. What has functions,
indices or anything else is left to it. Sizes were bounded before (`expression.check_expression`).
"""

from __future__ import annotations

from typing import Any

import sympy

from grpo_rewards_math.accuracy.grammar import Grammar
from grpo_rewards_math.accuracy.problems import NotRationalError, UnreadableError

__all__ = ["Trees"]

_GREEK = "alpha|beta|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|rho|sigma|tau|upsilon|phi|chi|psi|omega|pi"
_CONSTANTS = {"\\pi": sympy.pi, "e": sympy.E, "i": sympy.I}


class Trees(Grammar[Any]):
    """Values are sympy trees, simplified as sympy does by itself."""

    # f(x) is no product, E and I are not sure to be variables, and a name with an index is one name.
    names = rf"(?:[a-eijk-zA-DHJ-Z]|[fgh](?!\s*\())(?!\s*_)|\\(?:{_GREEK})(?![a-zA-Z])(?!\s*_)"

    def number(self, digits: str) -> Any:
        return sympy.Rational(digits if digits[0] != "." else "0" + digits)

    def name(self, name: str) -> Any:
        return _CONSTANTS.get(name) or sympy.Symbol(name.lstrip("\\").lower())

    def added(self, one: Any, other: Any) -> Any:
        return one + other

    def negative(self, value: Any) -> Any:
        return -value

    def multiplied(self, one: Any, other: Any) -> Any:
        return one * other

    def divided(self, numerator: Any, denominator: Any) -> Any:
        if denominator.is_zero:
            raise UnreadableError("division by zero")
        return numerator / denominator

    def raised(self, base: Any, exponent: Any) -> Any:
        if base.is_Rational and base < 0 and exponent.is_Rational and not exponent.is_Integer and exponent.q % 2:
            return (-base) ** exponent * (-1) ** (exponent.p % 2)
        if base.is_zero and not exponent.is_positive:
            raise UnreadableError("0 to a power of at most 0")
        return base**exponent

    def root(self, value: Any, degree: Any) -> Any:
        if degree.is_zero:
            raise UnreadableError("a root of degree 0")
        return self.raised(value, 1 / degree)

    def factorial(self, value: Any) -> Any:
        raise NotRationalError("a factorial")

    def binomial(self, n: Any, k: Any) -> Any:
        raise NotRationalError("a binomial coefficient")

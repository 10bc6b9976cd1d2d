"""Whether two expressions are the same, mathematically and not approximately.

Fractions are compared as such. Everything else is disproved by numbers first: both sides are computed at fixed points
to 60 digits, constants to 1,000. What cannot be told apart by these is the same; sides that cannot be computed are
left to math-verify. Constants with very long integers are the same only when they are written the same, so that no
difference can hide behind the last digit that was looked at.

Place in the flow: two values → **same expression?** → score.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy
from math_verify import verify

from grpo_rewards_math.accuracy.expression import tree_of
from grpo_rewards_math.accuracy.rational import has_digits_only
from grpo_rewards_math.accuracy.values import Expression

__all__ = ["radians", "same_expression", "same_trees", "tree"]

_DIGITS, _CONSTANT_DIGITS = 60, 1_000
_LONGEST_INTEGER = 100
_ROUNDED_DIGITS = 15
_POINTS = tuple(
    tuple(Fraction(sign * (numerator + 7 * i), 89) for i in range(12))
    for sign, numerator in ((1, 101), (-1, 61), (1, 37), (-1, 131))
)


def same_expression(reference: Expression, answer: Expression, ratio: Fraction = Fraction(1)) -> bool:
    """Whether `answer`, in units of which the reference's unit has `ratio`, is the reference."""
    if reference.exact is not None and answer.exact is not None:
        return reference.exact * ratio == answer.exact or _rounds_to(reference, answer)
    if ratio == 1 and _squeezed(reference.text) == _squeezed(answer.text):
        return True
    if has_digits_only(reference.text) and _significant(reference.text) >= _ROUNDED_DIGITS:
        return _rounds_to(reference, answer)
    return same_trees(tree(reference) * _rational(ratio), tree(answer))


def tree(expression: Expression) -> Any:
    """The sympy tree; raises `UnreadableError`."""
    return _rational(expression.exact) if expression.exact is not None else tree_of(expression.text)


@lru_cache(maxsize=4_096)
def same_trees(reference: Any, answer: Any) -> bool:
    """Whether two trees have the same value wherever they have one."""
    if reference == answer:
        return True
    if reference in _INFINITE or answer in _INFINITE:
        return False
    names = sorted(reference.free_symbols | answer.free_symbols, key=str)
    if not names:
        verdict = _same_constants(reference, answer)
    elif len(names) > len(_POINTS[0]):
        verdict = None
    else:
        verdict = _same_at_points(reference, answer, names)
    if verdict is None:
        return bool(verify(reference, answer, float_rounding=40, numeric_precision=60, timeout_seconds=None))
    return verdict


def radians() -> Any:
    """One degree."""
    return sympy.pi / 180


_INFINITE = (sympy.oo, -sympy.oo, sympy.zoo, sympy.nan)


def _same_constants(reference: Any, answer: Any) -> bool | None:
    reference, answer = reference.doit(), answer.doit()
    if reference.is_Rational and answer.is_Rational:
        return bool(reference == answer)
    close = _close(reference, answer, _DIGITS)
    if not close:
        return close
    if max(map(_length, reference.atoms(sympy.Rational) | answer.atoms(sympy.Rational)), default=0) > _LONGEST_INTEGER:
        return bool(reference == answer)
    return _close(reference, answer, _CONSTANT_DIGITS)


def _same_at_points(reference: Any, answer: Any, names: list[Any]) -> bool | None:
    """Whether they agree at all points where both have a value; None where none is left to look at."""
    compared = 0
    for point in _POINTS:
        values = {name: _rational(value) for name, value in zip(names, point, strict=False)}
        close = _close(reference.xreplace(values).doit(), answer.xreplace(values).doit(), _DIGITS)
        if close is False:
            return False
        compared += close is True
    return True if compared >= 2 else None


def _close(one: Any, other: Any, digits: int) -> bool | None:
    """Whether two constants agree to so many digits; None where one has no finite value."""
    first, second = _number(one, digits), _number(other, digits)
    if first is None or second is None:
        return None if first is second else False
    scale = max(abs(first), abs(second))
    return bool(abs(first - second) <= scale * sympy.Float(10, digits) ** (10 - digits)) or bool(
        scale < sympy.Float(10, digits) ** (20 - digits)
    )


def _number(constant: Any, digits: int) -> Any:
    value = sympy.N(constant, digits)
    if not value.is_number or value.has(sympy.oo, sympy.zoo, sympy.nan):
        return None
    real, imaginary = value.as_real_imag()
    return value if real.is_Float | real.is_Rational and imaginary.is_Float | imaginary.is_Rational else None


def _rational(value: Fraction) -> Any:
    return sympy.Rational(value.numerator, value.denominator)


def _length(number: Any) -> float:
    """Digits."""
    return max(int(abs(part)).bit_length() for part in (number.p, number.q)) * 0.30103


def _rounds_to(reference: Expression, answer: Expression) -> bool:
    """Whether a reference of 15 digits and more is an exact answer, written as a float; an answer in decimals is not
    exact and must be the same."""
    if not has_digits_only(reference.text) or _significant(reference.text) < _ROUNDED_DIGITS:
        return False
    if reference.exact is None or "." in answer.text or "." not in reference.text:
        return False
    value = _number(tree(answer), 40)
    if value is None or not value.is_real:
        return False
    places = len(reference.text.partition(".")[2])
    return bool(abs(value - sympy.N(_rational(reference.exact), 40)) <= sympy.Float(10, 40) ** -places)


def _significant(text: str) -> int:
    return len(re.sub(r"\D", "", text).lstrip("0"))


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)

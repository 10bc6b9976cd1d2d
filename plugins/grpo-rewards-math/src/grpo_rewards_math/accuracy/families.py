r"""Families over the integers, k\pi with k in Z: told from their text, and compared as sets of numbers.

A family whose forms are linear in the parameter is a union of progressions a + bk. Two unions are the same when their
first terms are, up to multiples of the periods: -\pi/2 + n\pi is \pi/2 + k\pi, and k\pi is 2k\pi and \pi + 2k\pi.
Other forms are the same when they are the same expression of the parameter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import sympy

from grpo_rewards_math.accuracy.exact import same_trees, tree
from grpo_rewards_math.accuracy.problems import UnreadableError
from grpo_rewards_math.accuracy.values import Expression

__all__ = ["PARAMETER", "same_families", "split_family"]

PARAMETER = "k"
"""The name that every parameter gets."""
_INTEGERS = r"\\mathbb\s*\{?\s*Z\s*\}?|\\text\{\s*Z\s*\}|Z(?![a-zA-Z])"
_ANY_INTEGER = r"(?:is |being |as |be )?(?:an? |any |some |every |arbitrary ){0,2}integers?"
_CONDITION = re.compile(
    rf"(?P<forms>.*?)(?:[,;:|]|\\mid(?![a-zA-Z])|\\quad|\s|\(|\b(?:for|where|with|and|all|any|every|some|each)\b|\\forall(?![a-zA-Z])"
    rf"|\\text\{{\s*(?:,?\s*(?:for|where|with|and|all|any|every|some|each|let))+\s*\}})*"
    rf"(?<![a-zA-Z\\])(?P<name>[a-zA-Z])\s*(?:\\in(?![a-zA-Z])\s*(?:{_INTEGERS})|\\text\{{\s*{_ANY_INTEGER}\s*\}}|{_ANY_INTEGER})\s*[).]?",
    re.DOTALL,
)
_MOST_TERMS = 1_000
_MAX_CHARACTERS = 400


def split_family(text: str) -> str | None:
    """The forms of a family, with `PARAMETER` in the place of its own; None for a text that is none.

    Raises `UnreadableError` where the forms do not depend on it.
    """
    if len(text) > _MAX_CHARACTERS or ("\\in" not in text and "integer" not in text):
        return None
    found = _CONDITION.fullmatch(text)
    if found is None or not found["forms"].strip():
        return None
    name, forms = found["name"], found["forms"].strip().removesuffix("(").strip(" ,;:")
    own = re.compile(rf"(?<![a-zA-Z\\]){name}(?![a-zA-Z])")
    if not own.search(forms) or (name != PARAMETER and re.search(rf"(?<![a-zA-Z\\]){PARAMETER}(?![a-zA-Z])", forms)):
        raise UnreadableError("a family that does not depend on its parameter alone")
    return own.sub(PARAMETER, forms)


def same_families(one: Sequence[Expression], other: Sequence[Expression]) -> bool:
    """Whether two families hold the same numbers."""
    first, second = ([tree(each) for each in forms] for forms in (one, other))
    one_lines, other_lines = _lines(first), _lines(second)
    if one_lines is None or other_lines is None:
        return _covered(first, second) and _covered(second, first)
    unit = abs(one_lines[0][1])
    ratios = [sympy.nsimplify(sympy.simplify(step / unit)) for _, step in (*one_lines, *other_lines)]
    if not all(ratio.is_Rational for ratio in ratios):
        return False
    period = math.lcm(*(abs(ratio.p) for ratio in ratios)) / sympy.Integer(math.gcd(*(ratio.q for ratio in ratios)))
    terms, others = _terms(one_lines, unit, period), _terms(other_lines, unit, period)
    return _covers(terms, others, period) and _covers(others, terms, period)


def _lines(trees: Sequence[Any]) -> list[tuple[Any, Any]] | None:
    """First term and step of each; None where one is not linear in the parameter, or has other names in it."""
    found = []
    for each in trees:
        parameter = sympy.Symbol(PARAMETER)
        step = sympy.expand(each).coeff(parameter, 1)
        first = sympy.expand(each).coeff(parameter, 0)
        if each.free_symbols != {parameter} or not step.is_real or not first.is_real or step == 0:
            return None
        if sympy.expand(each - first - step * parameter) != 0:
            return None
        found.append((first, step))
    return found


def _terms(lines: Sequence[tuple[Any, Any]], unit: Any, period: Any) -> list[Any]:
    """The first terms within a period, all in units."""
    terms = []
    for first, step in lines:
        ratio = abs(sympy.nsimplify(sympy.simplify(step / unit)))
        number = int(period / ratio)
        if number > _MOST_TERMS:
            raise UnreadableError("periods that have too long a common one")
        terms += [first / unit + ratio * each for each in range(number)]
    return terms


def _covers(terms: Sequence[Any], others: Sequence[Any], period: Any) -> bool:
    return all(any(_same_rest(term, other, period) for other in others) for term in terms)


def _same_rest(term: Any, other: Any, period: Any) -> bool:
    periods = sympy.Integer(round(float(sympy.N((term - other) / period, 30))))
    return same_trees(sympy.expand(term - other), periods * period)


def _covered(trees: Sequence[Any], others: Sequence[Any]) -> bool:
    return all(any(same_trees(each, other) for other in others) for each in trees)

"""Equations and inequalities: the value that one states, and whether two say the same.

Two relations are the same when their sides' differences are multiples of each other by a constant, positive for an
inequality: 4x - 2y = 10 and y = 2x - 5. Chains are compared link by link.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import sympy

from grpo_rewards_math.accuracy.exact import same_expression, same_trees, tree
from grpo_rewards_math.accuracy.problems import UnreadableError
from grpo_rewards_math.accuracy.values import Expression, Relation, Value, Words

__all__ = ["is_name", "same_relation", "side_tree", "stated_value", "variables"]

Link = tuple[Any, str]
"""The difference of two sides, and how it stands to 0: = < \\le \\ne."""

_NAME = re.compile(r"\\?[a-zA-Z]+'?(?:_\{?\w+\}?)?(?:\s*\([a-zA-Z]+(?:,\s*[a-zA-Z]+)*\))?")


def stated_value(relation: Relation) -> Value | None:
    """The value that a chain of = gives to a name, or repeats: x = 13, f(x) = 2x, 5 + 8 = 13. None when the sides
    that are no name differ, or when it is no such chain."""
    if set(relation.signs) != {"="}:
        return None
    values = list(relation.sides)
    if is_name(values[0]):
        del values[0]
    elif is_name(values[-1]):
        del values[-1]
    if len(values) == 1:
        return values[0]
    expressions = [value for value in values if isinstance(value, Expression) and not _has_variables(value)]
    same = len(expressions) == len(values) and all(same_expression(expressions[-1], v) for v in expressions[:-1])
    return expressions[-1] if same else None


def same_relation(reference: Relation, answer: Relation) -> bool:
    """Whether two relations hold for the same values."""
    first, second = links(reference), links(answer)
    if len(first) != len(second):
        return False
    return all(any(_same_link(one, other) for other in second) for one in first) and all(
        any(_same_link(one, other) for one in first) for other in second
    )


def links(relation: Relation) -> Sequence[Link]:
    """Every two neighbours of a chain as a difference and its sign."""
    pairs = zip(relation.sides, relation.signs, relation.sides[1:], strict=False)
    return [difference(left, sign, right) for left, sign, right in pairs]


def difference(left: Value, sign: str, right: Value) -> Link:
    """left - right, turned so that no sign says greater."""
    if sign in (">", "\\ge"):
        left, right, sign = right, left, {">": "<", "\\ge": "\\le"}[sign]
    return side_tree(left) - side_tree(right), sign


def side_tree(side: Value) -> Any:
    """A side as a sympy tree; raises `UnreadableError` for one that is no expression."""
    if isinstance(side, Words):
        return tree(Expression(" ".join(side.text), None))
    if not isinstance(side, Expression):
        raise UnreadableError("a relation of something else than expressions")
    return tree(side)


def variables(relation: Relation) -> frozenset[str]:
    """The names in it."""
    trees = [side_tree(side) for side in relation.sides]
    return frozenset(symbol.name for tree_ in trees for symbol in tree_.free_symbols)


def is_name(value: Value) -> bool:
    """Whether a side is a variable, or a function of variables, and no value."""
    if isinstance(value, Words):
        return True
    return (
        isinstance(value, Expression)
        and value.exact is None
        and value.text not in ("\\pi", "e", "i", "\\infty")
        and _NAME.fullmatch(value.text) is not None
    )


def _has_variables(expression: Expression) -> bool:
    return expression.exact is None and bool(tree(expression).free_symbols)


def _same_link(one: Link, other: Link) -> bool:
    (first, sign), (second, other_sign) = one, other
    if sign != other_sign or first.free_symbols != second.free_symbols:
        return False
    first, second = _numerator(first, sign), _numerator(second, sign)
    if same_trees(first, second):
        return True
    if same_trees(second, sympy.Integer(0)) or same_trees(first, sympy.Integer(0)):
        return False
    ratio = _ratio(first, second)
    if ratio is None or ratio == 0 or (sign in ("<", "\\le") and not ratio.is_positive):
        return False
    return same_trees(first, ratio * second)


def _numerator(expression: Any, sign: str) -> Any:
    """Of an equation without denominators; what stands in one of an inequality changes its direction."""
    return sympy.fraction(sympy.together(expression))[0] if sign in ("=", "\\ne") else expression


def _ratio(first: Any, second: Any) -> Any:
    """By which constant they could differ: their ratio at one point."""
    names = sorted(first.free_symbols | second.free_symbols, key=str)
    point = {name: sympy.Rational(113 + 16 * i, 71) for i, name in enumerate(names)}
    denominator = second.xreplace(point).doit()
    if denominator == 0:
        return None
    return sympy.nsimplify(sympy.simplify(first.xreplace(point).doit() / denominator))

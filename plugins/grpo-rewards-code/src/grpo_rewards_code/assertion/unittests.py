"""Assert methods of unittest, as plain assertions."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import cast

from grpo_rewards_code.problem.types import TestsError

__all__ = ["as_assertion", "attributes_as_names"]

_OPERATORS: Mapping[str, type[ast.cmpop]] = {
    "assertEqual": ast.Eq,
    "assertEquals": ast.Eq,
    "assertListEqual": ast.Eq,
    "assertTupleEqual": ast.Eq,
    "assertDictEqual": ast.Eq,
    "assertSetEqual": ast.Eq,
    "assertSequenceEqual": ast.Eq,
    "assertNotEqual": ast.NotEq,
    "assertIs": ast.Is,
    "assertIsNot": ast.IsNot,
    "assertIn": ast.In,
    "assertNotIn": ast.NotIn,
    "assertGreater": ast.Gt,
    "assertGreaterEqual": ast.GtE,
    "assertLess": ast.Lt,
    "assertLessEqual": ast.LtE,
}


def as_assertion(call: ast.Call) -> ast.Assert | None:
    """`self.assertEqual(a, b)` as `assert a == b`; None for a call that is no such method."""
    if not (isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)):
        return None
    name, given = call.func.attr, call.args
    if call.func.value.id != "self":
        return None
    test: ast.expr
    match name, given:
        case _, [one, other, *_] if name in _OPERATORS:
            test = ast.Compare(one, [_OPERATORS[name]()], [other])
        case "assertTrue", [one, *_]:
            test = one
        case "assertFalse", [one, *_]:
            test = ast.UnaryOp(ast.Not(), one)
        case "assertIsNone", [one, *_]:
            test = ast.Compare(one, [ast.Is()], [ast.Constant(None)])
        case "assertIsNotNone", [one, *_]:
            test = ast.Compare(one, [ast.IsNot()], [ast.Constant(None)])
        case "assertIsInstance", [one, other, *_]:
            test = ast.Call(ast.Name("isinstance", ast.Load()), [one, other], [])
        case "assertAlmostEqual", [one, other, *_]:
            test = _almost(call, one, other)
        case _:
            return None
    return ast.fix_missing_locations(ast.Assert(test, None))


def attributes_as_names(node: ast.ClassDef) -> ast.ClassDef:
    """A test class with `self.x` as a variable of its own name, so that what is set up is told apart.

    Raises `TestsError` where tests call other methods of their class.
    """
    methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    return cast(ast.ClassDef, _Attributes(methods).visit(copy.deepcopy(node)))


class _Attributes(ast.NodeTransformer):
    def __init__(self, methods: set[str]) -> None:
        self.methods = methods

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            return self.generic_visit(node)
        if node.attr in self.methods:
            raise TestsError(f"its tests call a method of their class: self.{node.attr}")
        if node.attr.startswith("assert") or node.attr in ("fail", "subTest"):
            return node
        return ast.copy_location(ast.Name(f"_self_{node.attr}", node.ctx), node)


def _almost(call: ast.Call, one: ast.expr, other: ast.expr) -> ast.expr:
    """`round(a - b, places) == 0`, as unittest defines it, within half a unit of that place."""
    settings = {each.arg: each.value for each in call.keywords}
    places = call.args[2] if len(call.args) > 2 else settings.get("places", ast.Constant(7))
    delta = settings.get("delta")
    if delta is None and isinstance(places, ast.Constant) and isinstance(places.value, int):
        delta = ast.Constant(0.5 * 10.0**-places.value)
    difference = ast.Call(ast.Name("abs", ast.Load()), [ast.BinOp(one, ast.Sub(), other)], [])
    return ast.Compare(difference, [ast.LtE()], [delta or ast.Constant(0.0)])

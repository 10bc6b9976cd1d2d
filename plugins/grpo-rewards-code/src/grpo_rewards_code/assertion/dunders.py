"""`f(3).__eq__(9)` as `f(3) == 9`: else what the program returned would say itself whether it is right."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import Any, cast

from grpo_rewards_code.assertion.scope import Scope

__all__ = ["with_operators"]

_COMPARISONS: Mapping[str, type[ast.cmpop]] = {
    "__eq__": ast.Eq,
    "__ne__": ast.NotEq,
    "__lt__": ast.Lt,
    "__le__": ast.LtE,
    "__gt__": ast.Gt,
    "__ge__": ast.GtE,
}


def with_operators(node: ast.expr, scope: Scope) -> ast.expr:
    """The expression with operators in the place of the methods behind them, as far as the program has a part in it."""
    if not any(isinstance(each, ast.Attribute) and each.attr.startswith("__") for each in ast.walk(node)):
        return node
    return cast(ast.expr, _Operators(scope).visit(copy.deepcopy(node)))


class _Operators(ast.NodeTransformer):
    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def visit_Call(self, node: ast.Call) -> Any:
        node = cast(ast.Call, self.generic_visit(node))
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=[other], keywords=[]):
                if not self.scope.mentions_program(value):
                    return node
                if name in _COMPARISONS:
                    return ast.Compare(value, [_COMPARISONS[name]()], [other])
                if name == "__contains__":
                    return ast.Compare(other, [ast.In()], [value])
                if name == "__getitem__":
                    return ast.Subscript(value, other, ast.Load())
            case ast.Call(func=ast.Attribute(value=value, attr="__len__" | "__bool__" as name), args=[], keywords=[]):
                return ast.Call(ast.Name(name.strip("_"), ast.Load()), [value], [])
        return node

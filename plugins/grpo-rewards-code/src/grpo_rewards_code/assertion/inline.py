"""Puts values in the place of names: what was assigned from a mixed expression, and items of written-out lists.

`result = f(3) == 9; assert result` is the assertion `f(3) == 9`, and `rows[0][1]` of a list that is written out is its
item: so an answer that stands beside its input is told apart from it.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from typing import Any, cast

from grpo_rewards_code.assertion.scope import Scope, calls_before, free_names, passed_whole
from grpo_rewards_code.problem.types import TestsError

__all__ = ["inlined"]


def inlined(node: ast.expr, scope: Scope) -> ast.expr:
    """The expression with the values of aliases, and with items of written-out lists in the place of `rows[0][1]`."""
    if not free_names(node) & (scope.aliases.keys() | scope.literals.keys()):
        return node
    made = cast(ast.expr, _Inliner(scope).visit(copy.deepcopy(node)))
    before, after = _subscripted(node), _subscripted(made)
    for name in before.keys() & scope.literals.keys():
        if after[name] < before[name] and (after[name] or _is_read_by_a_helper(name, made, scope)):
            raise TestsError(f"a test takes its input and its answer out of the same thing: {name}")
    return made


def _is_read_by_a_helper(name: str, node: ast.expr, scope: Scope) -> bool:
    """Whether all of a list still comes beside the program, and not as its input: `f(arg(0)) == rows[1]`."""
    lines, _ = scope.needed(node)
    if not any(name in line.binds for line in lines):
        return False
    return not any(name in passed_whole(tree) for tree in (node, *calls_before(lines, scope)))


def _subscripted(node: ast.AST) -> Counter[str]:
    """How often each name has something taken out of it."""
    found = (each.value for each in ast.walk(node) if isinstance(each, ast.Subscript))
    return Counter(name.id for each in found for name in ast.walk(each) if isinstance(name, ast.Name))


class _Inliner(ast.NodeTransformer):
    """Does it from the inside out."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def visit_Name(self, node: ast.Name) -> Any:
        return copy.deepcopy(self.scope.aliases.get(node.id, node)) if isinstance(node.ctx, ast.Load) else node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        node = cast(ast.Subscript, self.generic_visit(node))
        index = self.scope.literals.get(node.slice.id) if isinstance(node.slice, ast.Name) else node.slice
        rows = self.scope.literals.get(node.value.id) if isinstance(node.value, ast.Name) else node.value
        item = _item(rows, index) if rows is not None and index is not None else None
        return node if item is None else copy.deepcopy(item)


def _item(rows: ast.expr, index: ast.expr) -> ast.expr | None:
    try:
        key = ast.literal_eval(index)
    except (ValueError, TypeError):
        return None
    match rows:
        case ast.List(elts=items) | ast.Tuple(elts=items) if isinstance(key, int) and -len(items) <= key < len(items):
            return items[key]
        case ast.Dict(keys=keys, values=values):
            for each, value in zip(keys, values, strict=True):
                if isinstance(each, ast.Constant) and each.value == key:
                    return value
    return None

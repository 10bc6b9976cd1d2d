"""Answers that are Python programs: told from other answers by their syntax, hidden by another one, changed a little.

Nothing is compiled or run here.

Place in the flow: a row's reference → **its near miss, and the programs that take its place** → controls.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from random import Random

__all__ = ["hides", "is_program", "near_miss"]

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_STATEMENTS = (*_DEFINITIONS, ast.Import, ast.ImportFrom, ast.For, ast.While)
"""What no formula, number or sentence has."""
_RUNNING = (ast.Expr, ast.For, ast.While, ast.If, ast.With)
"""At the top of a script, and not of a module of functions."""
_LONGEST = 100_000
"""Characters; longer texts are not parsed."""
_OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
"""Operator -> the one that takes its place."""


def is_program(text: str) -> bool:
    """Whether a text is a program: Python with a definition, an import, a loop or a print."""
    tree = _parsed(text)
    return tree is not None and any(isinstance(node, _STATEMENTS) or _prints(node) for node in ast.walk(tree))


def hides(other: str, own: str) -> bool:
    """Whether a program before or after which `other` stands is no longer right: it prints as well, or defines the same
    names. A program that has both functions of two rows answers both."""
    one, two = _parsed(own), _parsed(other)
    if one is None or two is None:
        return False
    if _runs(one):
        return _runs(two)
    return bool(_defined(one)) and _defined(one) <= _defined(two)


def near_miss(text: str) -> str | None:
    """The program with one number, truth value or operator changed, the same one each time; None: it has none,
    or is nested too deeply.

    Loops with `while` stay as they are, or many changed programs would not end.
    """
    tree = _parsed(text)
    if tree is None:
        return None
    try:
        changes = list(_changes(tree))
        if not changes:
            return None
        Random(text).choice(changes)()
        return ast.unparse(tree)
    except RecursionError:  # a table written out as one long sum, say
        return None


def _parsed(text: str) -> ast.Module | None:
    if len(text) > _LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in a data set's text is not ours
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _prints(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"


def _runs(tree: ast.Module) -> bool:
    return any(isinstance(node, _RUNNING) and not _is_docstring(node) for node in tree.body)


def _defined(tree: ast.Module) -> set[str]:
    return {node.name for node in tree.body if isinstance(node, _DEFINITIONS)}


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _changes(node: ast.AST) -> Iterator[Callable[[], None]]:
    """Each changes one thing of the tree."""
    if isinstance(node, ast.While) or _is_docstring(node):
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        value = not node.value if isinstance(node.value, bool) else node.value + 1
        yield partial(setattr, node, "value", value)
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _OTHER:
        yield partial(setattr, node, "op", _OTHER[type(node.op)]())
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _OTHER:
        yield partial(setattr, node, "ops", [_OTHER[type(node.ops[0])](), *node.ops[1:]])
    for child in ast.iter_child_nodes(node):
        yield from _changes(child)

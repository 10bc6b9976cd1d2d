"""Loops of tests, unrolled: `for x, want in [(1, 2), (3, 4)]:` gives one scope an item, with a line a name.

So the input and the answer of an item are names of their own, and only the input goes to the program.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grpo_rewards_code.assertion.inline import inlined
from grpo_rewards_code.assertion.scope import Scope, is_literal
from grpo_rewards_code.problem.types import TestsError

__all__ = ["bind", "iterations"]

_MAX_ITEMS = 2000


def iterations(target: ast.expr, over: ast.expr, scope: Scope) -> Iterator[Scope]:
    """The scope of each pass of a loop. Raises `TestsError` where what it goes over is not written out."""
    items = _items(over, scope)
    if items is None or len(items) > _MAX_ITEMS:
        raise TestsError(f"its tests go over something that is not written out: {ast.unparse(over):.200}")
    for item in items:
        yield bind(target, item, scope)


def bind(target: ast.expr, value: ast.expr, scope: Scope) -> Scope:
    """After `target = value`, name by name. Raises `TestsError` where the value is not written out like the target."""
    match target, value:
        case ast.Name(id=name), _:
            value = inlined(value, scope)
            if is_literal(value):
                return scope.with_literal(name, value)
            if scope.mentions_program(value):
                return scope.with_alias(name, value)
            return scope.with_line(ast.Assign([target], value, lineno=1), {name}, by_program=False)
        case (ast.Tuple(elts=names) | ast.List(elts=names), ast.Tuple(elts=values) | ast.List(elts=values)) if len(
            names
        ) == len(values) and not any(isinstance(each, ast.Starred) for each in [*names, *values]):
            for part, each in zip(names, values, strict=True):
                scope = bind(part, each, scope)
            return scope
    raise TestsError(f"an item of its tests cannot be taken apart: {ast.unparse(value):.200}")


def _items(node: ast.expr, scope: Scope) -> list[ast.expr] | None:
    match node:
        case ast.Name(id=name) if name in scope.literals:
            return _items(scope.literals[name], scope)
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return [_param(item) for item in items]
        case ast.Call(func=ast.Name(id="zip"), args=arguments) if arguments:
            columns = [column for each in arguments if (column := _items(each, scope)) is not None]
            rows = zip(*columns, strict=False)
            return [ast.Tuple(list(row), ast.Load()) for row in rows] if len(columns) == len(arguments) else None
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner]):
            inside = _items(inner, scope)
            return inside and [ast.Tuple([ast.Constant(i), item], ast.Load()) for i, item in enumerate(inside)]
        case ast.Call(func=ast.Name(id="range"), args=arguments) if arguments:
            return _range(arguments, scope)
        case ast.Call(func=ast.Attribute(value=inner, attr="items"), args=[]):
            mapping = scope.literals.get(inner.id) if isinstance(inner, ast.Name) else inner
            if isinstance(mapping, ast.Dict) and None not in mapping.keys:
                pairs = zip(mapping.keys, mapping.values, strict=True)
                return [ast.Tuple([key, value], ast.Load()) for key, value in pairs if key is not None]
    return None


def _range(arguments: list[ast.expr], scope: Scope) -> list[ast.expr] | None:
    limits = []
    for each in arguments:
        match each:
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]) if name in scope.literals:
                limits.append(len(_items(scope.literals[name], scope) or []))
            case _:
                try:
                    limits.append(int(ast.literal_eval(each)))
                except (ValueError, TypeError, SyntaxError):
                    return None
    if not 1 <= len(limits) <= 3 or (len(limits) == 3 and limits[2] == 0):
        return None
    numbers = range(*limits)
    return [ast.Constant(number) for number in numbers] if len(numbers) <= _MAX_ITEMS else None


def _param(item: ast.expr) -> ast.expr:
    """`pytest.param(1, 2, id=…)` as the tuple it stands for."""
    if isinstance(item, ast.Call) and ast.unparse(item.func) == "pytest.param":
        return item.args[0] if len(item.args) == 1 else ast.Tuple(item.args, ast.Load())
    return item

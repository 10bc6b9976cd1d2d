"""Statements between assertions: what the scope is after an import, an assignment, or a call for its effect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from grpo_rewards_code.assertion.beside import is_beside
from grpo_rewards_code.assertion.inline import inlined
from grpo_rewards_code.assertion.loops import bind
from grpo_rewards_code.assertion.scope import Scope, free_names, is_literal
from grpo_rewards_code.problem.types import TestsError

__all__ = ["TOOLS", "after_assignment", "after_effect", "after_import", "shown"]

TOOLS = ("pytest", "unittest")
"""Test libraries."""
_PROGRAM_MODULES = ("solution", "main", "your_module", "program")
"""Modules by which tests mean the program."""


def after_import(node: ast.Import | ast.ImportFrom, scope: Scope) -> Scope:
    """An import; that of the program itself binds nothing, and `import solution` is a name for its functions."""
    if isinstance(node, ast.ImportFrom):
        if node.level or (node.module or "").partition(".")[0] in _PROGRAM_MODULES:
            renamed = [each for each in node.names if each.asname and each.asname != each.name]
            for each in renamed:
                target = ast.Assign(
                    [ast.Name(each.asname or "", ast.Store())], ast.Name(each.name, ast.Load()), lineno=1
                )
                scope = scope.with_line(target, {each.asname or ""}, by_program=True)
            return scope
        if node.module == "__future__":
            return scope
        if (node.module or "").partition(".")[0] in TOOLS:
            return scope.with_tool(each.asname or each.name for each in node.names)
        if any(each.name == "*" for each in node.names):
            raise TestsError(f"its tests import all names of a module: {ast.unparse(node)}")
        return scope.with_import(ast.unparse(node), [each.asname or each.name for each in node.names])
    for each in node.names:
        bound = each.asname or each.name.partition(".")[0]
        if each.name in _PROGRAM_MODULES:
            made = ast.parse(f"{bound} = type('Module', (), dict(globals()))").body[0]
            scope = scope.with_line(made, {bound}, by_program=True, is_object=True, is_module=True)
        elif each.name.partition(".")[0] in TOOLS:
            scope = scope.with_tool([bound])
        else:
            scope = scope.with_import(ast.unparse(ast.Import([each])), [bound])
    return scope


def after_assignment(node: ast.Assign | ast.AnnAssign, scope: Scope) -> Scope:
    """An assignment of a value of the test's own, of what the program gives, or of a mixture, put in its place."""
    targets: list[ast.expr] = node.targets if isinstance(node, ast.Assign) else [node.target]
    assert node.value is not None
    value = inlined(node.value, scope)
    written = scope.literals.get(value.id, value) if isinstance(value, ast.Name) else value
    if len(targets) == 1 and isinstance(targets[0], ast.Tuple) and isinstance(written, ast.Tuple | ast.List):
        return bind(targets[0], written, scope)
    node = ast.copy_location(ast.Assign(targets, value), node)
    names = {name for target in targets for name in _bound(target)}
    if not names:  # an item or an attribute of something
        return after_effect(node, scope)
    if not scope.mentions_program(value):
        if taken := _taken_out(value) & scope.own:
            raise TestsError(f"a statement takes something out of {min(taken)}: {shown(node)}")
        if is_literal(value) and len(targets) == 1 and isinstance(targets[0], ast.Name):
            return scope.with_literal(targets[0].id, value)
        return scope.with_line(node, names, by_program=False)
    if is_beside(value, scope, converted=True):
        made = value.func if isinstance(value, ast.Call) else None
        name = made.attr if isinstance(made, ast.Attribute) else made.id if isinstance(made, ast.Name) else ""
        after = scope.with_line(node, names, by_program=True, is_object=name[:1].isupper())
        given = (free_names(value) & scope.own) - scope.modules - scope.helpers.keys()
        return replace(after, passed=after.passed | given)
    if judge := _judges(node, scope):
        raise TestsError(f"a statement judges the program by {judge}, which is not known: {shown(node)}")
    if len(targets) == 1 and isinstance(targets[0], ast.Name):
        return scope.with_alias(targets[0].id, value)
    raise TestsError(f"a statement mixes the program with other things: {shown(node)}")


def _taken_out(node: ast.expr) -> set[str]:
    """Names of what an expression changes by taking something out of it."""
    return {
        each.func.value.id
        for each in ast.walk(node)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in ("pop", "popleft", "popitem")
        and isinstance(each.func.value, ast.Name)
    }


def _bound(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Tuple(elts=items) | ast.List(elts=items):
            for item in items:
                yield from _bound(item)
        case ast.Starred(value=value):
            yield from _bound(value)


def after_effect(node: ast.stmt, scope: Scope) -> Scope:
    """A statement that changes something: what it may change is changed by the program where that takes part."""
    ours = scope.mentions_program(node)
    if ours and (judge := _judges(node, scope)):
        raise TestsError(f"a statement judges the program by {judge}, which is not known: {shown(node)}")
    if ours and any(isinstance(each, ast.Compare) for each in ast.walk(node)):
        raise TestsError(f"a statement compares what the program gives, outside an assertion: {shown(node)}")
    stored = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
    touched = free_names(node) - scope.modules
    own = {name for name in touched if name in scope.own or name in scope.results}
    after = scope.with_line(node, stored, by_program=ours, touches=own)
    return replace(after, objects=after.objects | (scope.objects & (own | stored)))


def _judges(node: ast.stmt, scope: Scope) -> str:
    """What in a statement may fail a test, or nothing: it would be left out where no assertion needs it."""
    for each in ast.walk(node):
        if isinstance(each, ast.Raise | ast.Assert):
            return ast.unparse(each)
        name = each.attr if isinstance(each, ast.Attribute) else each.id if isinstance(each, ast.Name) else ""
        if scope.helpers.get(name) or name in ("exec", "eval") or _JUDGING.search(name):
            return name
    return ""


_JUDGING = re.compile(r"(?i)assert|raises|^fail$")


def shown(node: ast.AST) -> str:
    text = ast.unparse(node).replace("\n", " ⏎ ")
    return text if len(text) <= 200 else f"{text[:199]}…"

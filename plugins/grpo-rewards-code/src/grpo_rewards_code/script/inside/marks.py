"""A script with its assertions marked, so that it is known which of them ran and held.

`assert x` becomes `assert _held_(x)`, an equality in it `_same_(a, b)`; a call of `self.assertEqual` or of another
function named like that is counted after it, and so is a block that expects an exception.

Place in the flow: script → **marks** → run.
"""

from __future__ import annotations

import ast
import builtins
from typing import Any, cast

__all__ = ["MARKS", "PROGRAM_MODULES", "TOOLS", "USUAL_MODULES", "checks_in", "marked", "names_of_program"]

MARKS = ("_held_", "_same_", "_is_", "_ran_", "_looked_", "_failed_")
TOOLS = ("pytest", "unittest")
PROGRAM_MODULES = ("solution", "main", "your_module", "program")
"""Modules by which tests mean the program."""
USUAL_MODULES = {
    **{name: name for name in ("math", "cmath", "itertools", "functools", "collections", "numpy", "asyncio")},
    **{name: name for name in ("operator", "statistics", "random", "string", "datetime", "re", "json")},
    "np": "numpy",
}
"""What tests use without importing it."""
_EXPECTING = ("raises", "assertRaises", "assertRaisesRegex", "assertWarns", "assertWarnsRegex", "assertLogs", "warns")


def marked(tree: ast.Module, *, go_on: bool) -> ast.Module:
    """The tree with marks; `go_on`: what follows a failed assertion runs all the same."""
    made = cast(ast.Module, _Marker(go_on).visit(tree))
    if go_on:
        made.body = [each if _only_binds(each) else _guarded([each]) for each in made.body]
    return ast.fix_missing_locations(made)


def checks_in(tree: ast.AST) -> int:
    """How many places of a tree may fail a test."""
    return sum(map(_is_check, ast.walk(tree)))


def names_of_program(tree: ast.Module, entry_point: str | None) -> tuple[set[str], set[str]]:
    """Names that the script takes from the program, and which of them Python has too."""
    loaded, stored, bases, called = set[str](), set[str](), set[str](), set[str]()
    imported, modules = set[str](), set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                loaded.add(name)
            case ast.Name(id=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                stored.add(name)
            case ast.ClassDef(name=name) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                stored.add(name)
            case ast.ImportFrom(module=module, names=names, level=level):
                if level or (module or "").partition(".")[0] in PROGRAM_MODULES:
                    imported |= {each.name for each in names} - {"*"}
                stored |= {each.asname or each.name for each in names}
            case ast.Import(names=names):
                modules |= {each.asname or each.name for each in names if each.name in PROGRAM_MODULES}
                stored |= {each.asname or each.name.partition(".")[0] for each in names}
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            bases.add(node.value.id)
        if _is_check(node):
            called |= {each.func.id for each in ast.walk(node) if _calls_name(each)}  # type: ignore[attr-defined]
    usual = bases & (USUAL_MODULES.keys() | set(TOOLS))
    python = set(dir(builtins)) | {"__file__", "__name__"}
    through = {each.attr for each in ast.walk(tree) if _is_part_of(each, modules)}  # type: ignore[attr-defined]
    own = (loaded - stored - python - usual - {"raises", "approx"}) | imported | through
    if entry_point:
        own.add(entry_point)
    shadowed = own & python
    if not own:  # `assert sum([1, 2]) == 3` can mean no other function
        shadowed = (called & python) - stored
    return own, shadowed


def _calls_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def _is_part_of(node: ast.AST, modules: set[str]) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules


def _is_check(node: ast.AST) -> bool:
    match node:
        case ast.Assert() | ast.Raise():
            return True
        case ast.Call(func=func):
            name = _name(func)
            return _asserts(name) or name in _EXPECTING
    return False


def _name(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _asserts(name: str) -> bool:
    return name.lower().startswith("assert")


def _fails(node: ast.stmt) -> bool:
    """`assert False`, `raise …`, `pytest.fail(…)`."""
    match node:
        case ast.Assert(test=ast.Constant(value=False | 0)) | ast.Raise():
            return True
        case ast.Expr(value=ast.Call(func=func)):
            return _name(func) in ("fail", "exit", "_exit")
    return False


def _only_binds(node: ast.stmt) -> bool:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom | ast.Try
    return isinstance(node, kinds)


def _call(mark: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(mark, ast.Load()), list(arguments), [])


def _guarded(body: list[ast.stmt]) -> ast.stmt:
    failed = ast.Expr(_call("_failed_"))
    return ast.Try(body, [ast.ExceptHandler(ast.Name("BaseException", ast.Load()), None, [failed])], [], [])


class _Marker(ast.NodeTransformer):
    def __init__(self, go_on: bool) -> None:
        self.go_on = go_on

    def _check(self, *body: ast.stmt) -> Any:
        return _guarded(list(body)) if self.go_on else list(body)

    def visit_Assert(self, node: ast.Assert) -> Any:
        test = _Equalities().visit(node.test)
        return self._check(ast.copy_location(ast.Assert(_call("_held_", test), node.msg), node))

    def visit_Expr(self, node: ast.Expr) -> Any:
        match node.value:
            case ast.Call(func=func) if _asserts(_name(func)) or _name(func) in _EXPECTING:
                made = _call("_ran_", _Equalities().visit(node.value))
                return self._check(ast.copy_location(ast.Expr(made), node))
        return self.generic_visit(node)

    def visit_With(self, node: ast.With | ast.AsyncWith) -> Any:
        self.generic_visit(node)
        calls = (each.context_expr for each in node.items)
        if not any(isinstance(each, ast.Call) and _name(each.func) in _EXPECTING for each in calls):
            return node
        return self._check(node, ast.copy_location(ast.Expr(_call("_ran_")), node))

    def visit_AsyncWith(self, node: ast.AsyncWith) -> Any:
        return self.visit_With(node)

    def visit_Try(self, node: ast.Try) -> Any:
        expects = any(map(_fails, node.body)) or any(map(_fails, node.orelse))
        self.generic_visit(node)
        if expects:
            for handler in node.handlers:
                handler.body.insert(0, ast.Expr(_call("_ran_")))
        return self._check(node) if expects else node

    def visit_If(self, node: ast.If) -> Any:
        looks = any(map(_fails, node.body))
        self.generic_visit(node)
        if looks:
            node.test = _call("_looked_", node.test)
        return node


class _Equalities(ast.NodeTransformer):
    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        match node.ops, node.comparators:
            case [ast.Eq()], [other]:
                return _call("_same_", node.left, other)
            case [ast.NotEq()], [other]:
                return ast.UnaryOp(ast.Not(), _call("_same_", node.left, other))
            case [ast.Is()], [ast.Constant(value=bool()) as other]:
                return _call("_is_", node.left, other)
        return node

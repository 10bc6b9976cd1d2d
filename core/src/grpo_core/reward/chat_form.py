"""Whether a function reads completions or prompts as chats, as rewards of other trainers do: by its source.

Here they are texts, so `completion[0]["content"]` fails at the first step. Only what must fail is reported:
a text indexed by a text, on every way through the function. What is not certain (a test of the type, an exception
that is caught, a name that is set anew) passes.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence

__all__ = ["reads_chats"]

_TESTS = frozenset(("isinstance", "issubclass", "type", "hasattr", "callable", "is_conversational"))
"""A function that calls one of these may well take both forms."""
_READS = frozenset(("get", "keys", "values", "items", "pop", "content", "role"))
"""What messages have and texts have not."""
_TEXTS = ("completions", "prompts")
"""Parameters that get a list of texts."""


def reads_chats(function: Callable[..., object]) -> dict[str, str]:
    """Parameter -> the first expression that takes one of its texts for a list of messages, as it is written; empty:
    none does so for certain."""
    definition = _definition(function)
    if definition is None or _may_take_both(definition):
        return {}
    bound, evaluated = [*_bindings(definition)], [*_always_run(definition.body)]
    found = {}
    for parameter in _TEXTS:
        names = _Names(parameter, bound)
        misread = (n for n in evaluated if isinstance(n, ast.Subscript | ast.Attribute) and names.is_misread(n))
        first = next(misread, None)
        if first is not None:
            found[parameter] = ast.unparse(first)
    return found


def _definition(function: Callable[..., object]) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    while isinstance(function, functools.partial):
        function = function.func
    routine = function if inspect.isroutine(function) else type(function).__call__
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(routine)))
        tree = ast.parse(source)
    except (OSError, TypeError, ValueError, SyntaxError):  # compiled, typed at a prompt, or a lambda in a line
        return None
    first = tree.body[0] if len(tree.body) == 1 else None
    return first if isinstance(first, ast.FunctionDef | ast.AsyncFunctionDef) else None


def _may_take_both(definition: ast.AST) -> bool:
    calls = (node.func for node in ast.walk(definition) if isinstance(node, ast.Call))
    names = {func.id if isinstance(func, ast.Name) else getattr(func, "attr", "") for func in calls}
    has_match = any(isinstance(node, ast.Match) for node in ast.walk(definition))
    return has_match or bool(names & _TESTS)


def _always_run(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """All expressions that a call with at least one completion evaluates, and loops' inner ones with them."""
    for statement in body:
        match statement:
            case ast.If(test=test):
                yield from _evaluated(test)
                if any(isinstance(node, ast.Return | ast.Raise | ast.Continue) for node in ast.walk(statement)):
                    return  # what follows may not be reached
            case ast.While(test=test):
                yield from _evaluated(test)
            case ast.For(iter=rows, body=inner) | ast.AsyncFor(iter=rows, body=inner):
                yield from _evaluated(rows)
                yield from _always_run(inner)
                if any(isinstance(node, ast.Return | ast.Raise | ast.Break) for node in ast.walk(statement)):
                    return
            case ast.With(items=items, body=inner) | ast.AsyncWith(items=items, body=inner):
                for item in items:
                    yield from _evaluated(item.context_expr)
                return  # it may swallow what is raised in it
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass  # run where it is called, or not at all
            case ast.Try() | ast.TryStar():
                pass
            case ast.Return() | ast.Raise():
                yield from _evaluated(statement)
                return
            case ast.Continue() | ast.Break():
                return
            case _:
                yield from _evaluated(statement)


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """An expression and those in it that are evaluated with it."""
    yield node
    match node:
        case ast.IfExp(test=test):
            yield from _evaluated(test)
        case ast.BoolOp(values=values):
            yield from _evaluated(values[0])
        case ast.Lambda():
            pass
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            outer, *inner = node.generators
            yield from _evaluated(outer.iter)
            for test in outer.ifs[:1]:
                yield from _evaluated(test)
            if not any(each.ifs for each in node.generators):
                parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
                for part in (*(each.iter for each in inner), *parts):
                    yield from _evaluated(part)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _evaluated(child)


class _Names:
    """Which names of a function are texts of a parameter, or characters of one."""

    def __init__(self, parameter: str, bound: Sequence[tuple[str, ast.expr | None]]) -> None:
        sources: dict[str, list[ast.expr | None]] = {}
        for name, source in bound:
            sources.setdefault(name, []).append(source)
        self._parameter = None if parameter in sources else parameter  # set anew, it may be anything
        self._texts = {name for name, found in sources.items() if all(map(self._is_list, found))}
        self._parts = {name for name, found in sources.items() if all(map(self._is_text, found))}

    def is_misread(self, node: ast.Subscript | ast.Attribute) -> bool:
        """Whether it is a text, or a character of one, indexed by a text or asked for what only mappings have."""
        if not (self._is_text(node.value) or self._is_part(node.value)):
            return False
        if isinstance(node, ast.Attribute):
            return node.attr in _READS
        return isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)

    def _is_list(self, node: ast.expr | None) -> bool:
        return isinstance(node, ast.Name) and node.id == self._parameter

    def _is_text(self, node: ast.expr | None) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._texts
        return isinstance(node, ast.Subscript) and self._is_list(node.value) and not isinstance(node.slice, ast.Slice)

    def _is_part(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._parts
        return isinstance(node, ast.Subscript) and self._is_text(node.value)


def _bindings(definition: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.expr | None]]:
    """(name, what it runs over) of every name that is set in a function; None: it is set to something else."""
    for node in ast.walk(definition):
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            yield from _loop_names(node.target, node.iter)
            continue
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.withitem):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            targets += [node.optional_vars] if isinstance(node, ast.withitem) else []
            for target in filter(None, targets):
                yield from ((each.id, None) for each in ast.walk(target) if isinstance(each, ast.Name))


def _loop_names(target: ast.expr, rows: ast.expr) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target.id, rows
        return
    sources: list[ast.expr | None] = []
    if isinstance(rows, ast.Call) and isinstance(rows.func, ast.Name):
        if rows.func.id == "zip":
            sources = list(rows.args)
        elif rows.func.id == "enumerate" and rows.args:
            sources = [None, rows.args[0]]
    places = target.elts if isinstance(target, ast.Tuple | ast.List) else []
    for place, inner in enumerate(places):
        source = sources[place] if place < len(sources) else None
        if source is not None and not isinstance(source, ast.Starred):
            yield from _loop_names(inner, source)
        else:
            yield from ((each.id, None) for each in ast.walk(inner) if isinstance(each, ast.Name))

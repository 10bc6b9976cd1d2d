"""Which part of an assertion runs beside the program: its calls, and plain conversions of what they give.

A comparison, arithmetic, or a method of text and lists on what the program gives is never such a part: it would hold a
piece of the answer, and the program could decide what it means.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from grpo_rewards_code.assertion.scope import Scope, free_names

__all__ = ["asks_an_object", "is_beside", "is_object"]

_CONVERSIONS = frozenset(
    {
        *("abs", "bool", "dict", "enumerate", "float", "frozenset", "int", "iter", "len", "list", "map", "max", "min"),
        *("next", "repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple", "type", "zip"),
    }
)
_SEVERAL_ARGUMENTS = frozenset({"map", "round", "zip"})
_OF_DATA = frozenset(
    name for kind in (str, bytes, list, dict, set, tuple, int, float) for name in dir(kind) if not name.startswith("_")
) | {"equals", "all", "any"}


def is_beside(node: ast.expr, scope: Scope, *, converted: bool) -> bool:
    """Whether an expression is the program's part of a test.

    `converted`: conversions of results count too (`sorted(f(x))`), for what is compared with a value; not for what is
    only asked whether it is true.
    """
    match node:
        case ast.Name(id=name):
            return name not in scope.aliases and scope.is_program(name)
        case ast.Attribute(value=value):
            return is_beside(value, scope, converted=converted) and (converted or is_object(value, scope))
        case ast.Starred(value=value):
            return is_beside(value, scope, converted=converted)
        case ast.Subscript(value=value, slice=index):
            return is_beside(value, scope, converted=converted) and not _judges(index, scope)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return converted and bool(items) and all(is_beside(item, scope, converted=True) for item in items)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            return converted and _repeats(node, node.elt, scope)
        case ast.Call():
            return _is_call_beside(node, scope, converted)
    return False


def _is_call_beside(node: ast.Call, scope: Scope, converted: bool) -> bool:
    match node.func:
        case ast.Name(id=name):
            if is_beside(node.func, scope, converted=False):
                return True
            is_conversion = name in _CONVERSIONS or name in scope.helpers or name in scope.modules
            if scope.helpers.get(name) or not (is_conversion and converted):
                return False
            return _converts(node, scope, several=name in _SEVERAL_ARGUMENTS)
        case ast.Attribute(value=ast.Name(id=module), attr=attribute) if module in scope.modules:
            if (module, attribute) == ("asyncio", "run"):
                return len(node.args) == 1 and is_beside(node.args[0], scope, converted=converted)
            return converted and _converts(node, scope, several=attribute in _SEVERAL_ARGUMENTS)
        case ast.Attribute(value=ast.Constant(value=str()), attr="join"):
            return converted and _converts(node, scope, several=False)
        case ast.Attribute(value=value):
            if not is_object(value, scope) and (node.args or node.keywords or not converted):
                return False  # what the program returned would say whether it is right
            return is_beside(value, scope, converted=converted)
    return is_beside(node.func, scope, converted=False)


def _converts(node: ast.Call, scope: Scope, *, several: bool) -> bool:
    """Whether a call only changes the form of what the program gave: one argument, and perhaps how to sort."""
    positional = node.args
    if not positional or (len(positional) > 1 and not several):
        return False
    if any(_judges(each.value, scope) for each in node.keywords):
        return False
    ours = [argument for argument in positional if is_beside(argument, scope, converted=True)]
    others = [argument for argument in positional if argument not in ours]
    return bool(ours) and not any(_judges(argument, scope) for argument in others)


def _judges(node: ast.AST, scope: Scope) -> bool:
    """Whether an expression compares, or needs the program where it should not."""
    compares = any(isinstance(each, ast.Compare | ast.BoolOp) for each in ast.walk(node))
    return compares or scope.mentions_program(node)


def _repeats(node: ast.ListComp | ast.SetComp | ast.GeneratorExp, element: ast.expr, scope: Scope) -> bool:
    """`[f(x) for x in (1, 2)]`: calls for several inputs."""
    variables: set[str] = set()
    for each in node.generators:
        if any(_judges(condition, scope) for condition in each.ifs) or _judges(each.iter, scope):
            return False
        variables |= {name.id for name in ast.walk(each.target) if isinstance(name, ast.Name)}
    inner = replace(scope, own=scope.own | variables, results=scope.results - variables)
    return is_beside(element, inner, converted=True) and bool(free_names(element))


def asks_an_object(node: ast.Attribute, scope: Scope) -> bool:
    """Whether something is asked of what the program returned that only an object of its own could answer."""
    return node.attr not in _OF_DATA and is_beside(node.value, scope, converted=True)


def is_object(node: ast.expr, scope: Scope) -> bool:
    """Whether a receiver is an object of the program's own class, as far as its spelling tells: `Stack()`, what was
    assigned from that, or a name of the program itself."""
    match node:
        case ast.Name(id=name):
            return name in scope.objects or name not in scope.results
        case ast.Attribute(value=value):
            return is_object(value, scope)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name[:1].isupper()
    return False

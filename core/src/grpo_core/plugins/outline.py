"""Whether a target is there, as far as its source tells: nothing of it is imported, so nothing of it runs.

A recipe names code, and looking at a recipe must not run that. What only running it tells (names that a module makes of
others, `from x import *`, compiled modules) passes, and is found by who imports it (`targets`).
"""

from __future__ import annotations

import ast
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path

from grpo_core.errors import BrokenReference
from grpo_core.plugins.absent import no_attribute, no_file, no_module
from grpo_core.plugins.faults import describe
from grpo_core.plugins.targets import is_target

__all__ = ["check_target", "source_file"]

_MAKES_NAMES = frozenset(("globals", "locals", "vars", "setattr", "exec", "__getattr__", "__path__", "modules"))
"""Where a source has one of these words it may have names that cannot be read off it."""


def check_target(target: str) -> None:
    """Raise `BrokenReference` for a target that leads nowhere, or into a file that is no Python."""
    if not is_target(target):
        raise BrokenReference(f"'{target}' is not a target", hint="Write pkg.mod:attr or /absolute/file.py:attr.")
    place, _, attribute = target.rpartition(":")
    file = source_file(place, target)
    if file is not None:
        _check_names(_parse(file, target), attribute.split("."), target)


def source_file(place: str, target: str | None = None) -> Path | None:
    """The source of `pkg.mod` or `/absolute/file.py`; None where there is none to read. Raises `BrokenReference` when
    there is no such file or module; `target` is what needs it."""
    if place.endswith(".py"):
        path = Path(os.path.abspath(place))
        if not path.is_file():
            raise no_file(path, target)
        return path
    file: Path | None = None
    folders: Sequence[str] | None = None
    names = place.split(".")
    for count in range(1, len(names) + 1):
        name = ".".join(names[:count])
        spec = _find(name, folders) if count == 1 or folders is not None else None
        if spec is None:
            if name in sys.modules or (file is not None and _words(file) & _MAKES_NAMES):
                return None
            raise no_module(name, target, folders or (() if count > 1 else None))
        file, folders = _source_of(spec), spec.submodule_search_locations
    return file


def _find(name: str, folders: Sequence[str] | None) -> ModuleSpec | None:
    """As the import system looks, one part of a dotted name at a time: `importlib.util.find_spec` would import the
    packages on the way."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = find(name, folders) if find else None
        if spec is not None:
            return spec
    return None


def _source_of(spec: ModuleSpec) -> Path | None:
    path = Path(spec.origin) if spec.has_location and spec.origin else None
    return path if path is not None and path.suffix == ".py" and path.is_file() else None


def _words(file: Path) -> frozenset[str]:
    """The names that a source uses."""
    tree = _parse(file, None)
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    found |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return frozenset(found | {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)})


def _parse(file: Path, target: str | None) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the source's style; they are shown when it is imported
            tree = ast.parse(file.read_bytes(), str(file))
            compile(tree, str(file), "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BrokenReference(f"'{target or file}' cannot be imported: {describe(error)}") from error
    return tree


def _check_names(tree: ast.Module, names: Sequence[str], target: str) -> None:
    """Raise `BrokenReference` for the first name that is not bound in the module, or in the class before it."""
    body: list[ast.stmt] | None = tree.body
    for number, name in enumerate(names):
        if body is None or _is_open(body):
            return
        bound = set(_bound(body))
        if name not in bound:
            raise no_attribute(target, names[:number], name, sorted(bound))
        body = _plain_class(body, name)


def _is_open(body: Sequence[ast.stmt]) -> bool:
    """Whether it may have names that cannot be read off it."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    words = {getattr(node, key, None) for node in nodes for key in ("id", "attr", "name")}
    return bool(words & _MAKES_NAMES) or any(
        isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in nodes
    )


def _plain_class(body: Sequence[ast.stmt], name: str) -> list[ast.stmt] | None:
    """The body of a class that has no names but its own; None for anything else."""
    found = [node for node in body if isinstance(node, ast.ClassDef) and node.name == name]
    if len(found) != 1 or found[0].bases or found[0].keywords or found[0].decorator_list:
        return None
    return found[0].body


def _bound(body: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that statements bind where they stand, and as `global` anywhere below."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Global):
                yield from node.names
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield from _bound_by(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)  # what is bound inside those is their own


def _bound_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import() | ast.ImportFrom():
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name

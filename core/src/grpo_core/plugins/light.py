"""Whether a plugin's module is light, as far as its source tells: every `grpoctl` command imports it.

Followed is what runs at import, through the plugin's own package and core's; nothing is imported here.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path

from grpo_core.errors import BrokenReference
from grpo_core.plugins.faults import short_path
from grpo_core.plugins.outline import source_file

__all__ = ["heavy_imports"]

_HEAVY = frozenset(
    (
        *("torch", "transformers", "datasets", "vllm", "deepspeed", "peft", "accelerate", "trl", "sglang"),
        *("tensorflow", "jax", "ray"),
    )
)
"""Libraries that take seconds to import."""


def heavy_imports(place: str) -> list[str]:
    """`torch (grpo_acme/rewards.py:3)` for each heavy library that importing `pkg.plugin`, or `/absolute/file.py`,
    brings with it."""
    own = {place.partition(".")[0], "grpo_core"} if not place.endswith(".py") else {"grpo_core"}
    found: dict[str, str] = {}
    seen: set[str] = set()
    waiting = [place] if place.endswith(".py") else _with_parents(place)
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        for name, where in _imports_of(module):
            root = name.partition(".")[0]
            if root in _HEAVY:
                found.setdefault(root, where)
            elif root in own:
                waiting += _with_parents(name)
    return [f"{name} ({where})" for name, where in found.items()]


def _with_parents(name: str) -> list[str]:
    """A module and the packages it is in, which are imported with it."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _imports_of(module: str) -> Iterator[tuple[str, str]]:
    """(module or attribute of one, where) of what a module imports when it is imported."""
    try:
        file = source_file(module)
        tree = None if file is None else ast.parse(file.read_bytes())
    except (BrokenReference, OSError, SyntaxError, ValueError):  # an attribute, or said elsewhere
        return
    if file is None or tree is None:
        return
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in _run_at_import(tree.body):
        where = f"{short_path(str(file))}:{node.lineno}"
        yield from ((name, where) for name in _names(node, package, file))


def _run_at_import(body: Sequence[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If):
            if "TYPE_CHECKING" not in ast.unparse(node.test):
                yield from _run_at_import(node.body)
            yield from _run_at_import(node.orelse)
        elif isinstance(node, ast.Try | ast.With | ast.ClassDef):
            yield from _run_at_import(node.body)


def _names(node: ast.Import | ast.ImportFrom, package: str, file: Path) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = node.module or ""
    if node.level:
        try:
            base = importlib.util.resolve_name("." * node.level + base, package or file.stem)
        except ImportError:
            return
    yield base
    yield from (f"{base}.{alias.name}" for alias in node.names)  # each may be a module

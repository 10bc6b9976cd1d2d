"""Whether a user's function can be called without a second thought: it says so, or its source shows nothing else.

A registered reward has `pure` in its spec. A function of a file may have an attribute `pure`; where it has none, what
its module imports and calls tells whether it could ask a service, load a model, start a process, draw by chance or
write a file.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterator

__all__ = ["why_impure"]

_REACHING = {
    "a service": (
        *("aiohttp", "anthropic", "boto3", "botocore", "e2b", "google", "grpc", "http", "httpx", "litellm", "ollama"),
        *("openai", "paramiko", "requests", "smtplib", "socket", "ssl", "urllib", "urllib3", "websockets", "redis"),
    ),
    "a model": ("peft", "sentence_transformers", "torch", "transformers", "tensorflow", "jax", "vllm"),
    "a process": ("asyncio", "concurrent", "docker", "multiprocessing", "subprocess"),
    "chance": ("random", "secrets", "uuid"),
}
"""What a module may be for -> modules that are."""
_OF_FILES = frozenset(
    ("open", "write_text", "write_bytes", "touch", "mkdir", "makedirs", "unlink", "rmtree", "system", "popen")
)
"""Functions and methods that change what lies on a disk, or may."""


def why_impure(function: Callable[..., object]) -> str | None:
    """Why it may not be pure, in words; None: it says that it is, or nothing in its module tells otherwise."""
    said = getattr(function, "pure", None)
    if isinstance(said, bool):
        return None if said else "it says that it is not pure"
    while isinstance(function, functools.partial):
        function = function.func
    module = inspect.getmodule(inspect.unwrap(function) if inspect.isroutine(function) else type(function))
    try:
        source = inspect.getsource(module) if module is not None else None
        tree = ast.parse(source) if source is not None else None
    except (OSError, TypeError, SyntaxError, ValueError):
        tree = None
    if tree is None:
        return "its source cannot be read"
    for name in _called(tree):
        if name in _OF_FILES:
            return f"it may use files, as its module calls {name}"
    for name in _imported(tree):
        for what, modules in _REACHING.items():
            if name in modules:
                return f"it may use {what}, as its module imports {name}"
    return None


def _called(tree: ast.Module) -> Iterator[str]:
    """The names of what a module calls, `write` of `file.write(…)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id
            elif isinstance(node.func, ast.Attribute):
                yield node.func.attr


def _imported(tree: ast.Module) -> Iterator[str]:
    """The topmost names of what a module imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]

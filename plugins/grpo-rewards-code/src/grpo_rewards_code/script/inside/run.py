"""The script's side: executes the script with stubs for the program's names, and gives the verdict.

Place in the flow: task → **run** → stubs → peer → host; record → verdict.
"""

from __future__ import annotations

import ast
import builtins
import gc
import importlib
import io
import sys
import types
import unittest
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from grpo_rewards_code.script.inside import guard
from grpo_rewards_code.script.inside.collect import tests_of
from grpo_rewards_code.script.inside.equal import equality
from grpo_rewards_code.script.inside.marks import (
    PROGRAM_MODULES,
    TOOLS,
    USUAL_MODULES,
    checks_in,
    marked,
    names_of_program,
)
from grpo_rewards_code.script.inside.peer import Peer
from grpo_rewards_code.script.inside.pytest_names import as_module
from grpo_rewards_code.script.inside.record import Record
from grpo_rewards_code.script.inside.stubs import RemoteFunction, RemoteType

__all__ = ["run_script"]

_EQUALITIES = "assertEqual", "assertEquals", "assertListEqual", "assertTupleEqual", "assertDictEqual", "assertSetEqual"
_FILE = "<test code>"


def run_script(
    task: Mapping[str, Any], read: Callable[[], str], write: Callable[[str], None], largest_bytes: int
) -> None:
    """Run a script to its verdict, which is the last line written."""
    served = guard.Guarded()
    peer = Peer(read, write, served, largest_bytes, decides=True)
    served.peer = peer
    peer.around = _around(sys.stdin, builtins.input)
    peer.took = _took
    same = equality(task["relative"], task["absolute"])
    record = Record(peer, same)
    tree = ast.parse(task["script"])
    own, shadowed = names_of_program(tree, task["entry_point"])
    checks = checks_in(tree)
    names = _Names(peer, shadowed)
    names.update(record.marks(), __name__="__main__", __file__=_FILE)
    _offer_modules(peer, names)
    _patch_unittest(same)
    guard.refuse_files()
    gc.enable()
    _run(tree, names, record, task)
    if shadowed and not own and not names.found:
        record.lacks(min(shadowed))
    write("." + record.verdict(checks))


def _run(tree: ast.Module, names: _Names, record: Record, task: Mapping[str, Any]) -> None:
    go_on = bool(task["partial"])
    called = frozenset(
        each.func.id for each in ast.walk(tree) if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
    )
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    with _noted(record):
        code = compile(marked(tree, go_on=go_on), _FILE, "exec", dont_inherit=True)
        try:
            exec(code, names)  # noqa: S102  what a sandbox is for
        except SystemExit as end:
            if hasattr(end, "of_program") or end.code not in (None, 0, False):
                raise
    if record.has_failed and not go_on:
        return
    tests = _checked(names, called, task["entry_point"], record)
    for test in tests:
        with _noted(record):
            test()
        if record.has_failed and not go_on:
            return


def _checked(
    names: _Names, called: frozenset[str], entry_point: str | None, record: Record
) -> Iterator[Callable[[], object]]:
    yield from tests_of(names, called, record.failed)
    check = names.get("check")
    if isinstance(check, types.FunctionType) and "check" not in called and check.__code__.co_argcount == 1:
        yield lambda: check(names[entry_point or ""])


@contextmanager
def _noted(record: Record) -> Iterator[None]:
    try:
        yield
    except BaseException as error:  # noqa: BLE001  the program's or the script's, which the record tells apart
        record.failed(error)


class _Names(dict[str, Any]):
    """The script's globals; what it does not define is Python's, or else the program's."""

    def __init__(self, peer: Peer, shadowed: set[str]) -> None:
        super().__init__()
        self._peer = peer
        self._shadowed = shadowed
        self._known: dict[str, Any] = {}
        self.found: set[str] = set()
        """Names of Python's that the program has too, and that were read."""

    def __missing__(self, name: str) -> Any:
        if name in self._known:
            return self._known[name]
        if hasattr(builtins, name):
            return self._builtin(name)
        if name in USUAL_MODULES or name in TOOLS:
            found = self._module(name)
        elif name in ("raises", "approx"):
            found = getattr(sys.modules["pytest"], name)
        else:
            found = self._peer.ask("get", None, [name])
            if not isinstance(found, RemoteFunction | RemoteType):
                return found  # the program may give it another value
        self._known[name] = found
        return found

    def _builtin(self, name: str) -> Any:
        found = getattr(builtins, name)
        if name in self._shadowed:
            with suppress(NameError):
                found = self._peer.ask("get", None, [name])
                self.found.add(name)
            self._known[name] = found
        return found

    def _module(self, name: str) -> Any:
        try:
            return importlib.import_module(USUAL_MODULES.get(name, name))
        except ImportError:
            return self._peer.ask("get", None, [name])


class _Program(types.ModuleType):
    """`import solution`."""

    def __init__(self, name: str, peer: Peer, names: _Names) -> None:
        super().__init__(name)
        self.__dict__["_names_"] = lambda: peer.ask("names", None), lambda each: peer.ask("get", None, [each])
        self.__dict__["__path__"] = []

    def __getattr__(self, name: str) -> Any:
        listed, found = self.__dict__["_names_"]
        if name == "__all__":
            return listed()
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return found(name)
        except NameError as error:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from error


def _offer_modules(peer: Peer, names: _Names) -> None:
    sys.modules["pytest"] = as_module()
    for name in PROGRAM_MODULES:
        sys.modules[name] = _Program(name, peer, names)


def _patch_unittest(same: Callable[[Any, Any], Any]) -> None:
    """Equality within the tolerance; and test cases are run once, when the script has ended."""
    unittest.main = lambda *_, **__: None  # type: ignore[assignment]
    for name in _EQUALITIES:
        usual = getattr(unittest.TestCase, name, None)
        if usual is not None:
            setattr(unittest.TestCase, name, _within(usual, same))
    unittest.TestCase.assertCountEqual = _count_equal  # type: ignore[method-assign]


def _within(usual: Callable[..., None], same: Callable[[Any, Any], Any]) -> Callable[..., None]:
    def method(self: Any, first: Any, second: Any, msg: Any = None) -> None:
        if not same(first, second):
            usual(self, first, second, msg)

    return method


def _count_equal(self: Any, first: Any, second: Any, msg: Any = None) -> None:
    left = list(second)
    for each in first:
        if each not in left:
            raise AssertionError(msg or "items differ")
        left.remove(each)
    if left:
        raise AssertionError(msg or "items differ")


def _around(stdin: object, ask: object) -> Callable[[], object]:
    """What a program reads, where the script has put something in its place."""

    def around() -> object:
        text = None
        if isinstance(sys.stdin, io.StringIO) and sys.stdin is not stdin:
            place = sys.stdin.tell()
            text = sys.stdin.read()
            sys.stdin.seek(place)
        replaced = None if builtins.input is ask else builtins.input
        return None if text is None and replaced is None else (text, replaced)

    return around


def _took(used: Any) -> None:
    """What the program printed, and how far it read."""
    printed, read = used
    sys.stdout.write(printed)
    if read and isinstance(sys.stdin, io.StringIO):
        sys.stdin.seek(sys.stdin.tell() + read)

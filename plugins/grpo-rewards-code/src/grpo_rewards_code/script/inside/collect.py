"""The tests that a script defines and does not run itself: functions, classes of pytest and of unittest, `check`.

Place in the flow: script → run → **collect** → record.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import sys
import types
import unittest
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from grpo_rewards_code.script.inside.pytest_names import Skipped
from grpo_rewards_code.script.inside.stubs import RemoteFunction, RemoteType, Unjudged

__all__ = ["tests_of"]

Test = Callable[[], object]
_SET_UP, _TEAR_DOWN = ("setup_method", "setup", "setUp"), ("teardown_method", "teardown", "tearDown")


def tests_of(
    names: Mapping[str, Any], called: frozenset[str], failed: Callable[[BaseException], object]
) -> Iterator[Test]:
    """What is to be called, in order.

    `called`: functions that the script calls itself; `failed` takes what unittest catches.
    """
    fixtures = _fixtures_in(names)
    for name, each in list(names.items()):
        if isinstance(each, RemoteType | RemoteFunction):
            continue
        if isinstance(each, type) and issubclass(each, unittest.TestCase) and each.__module__ == names["__name__"]:
            yield lambda each=each: _run_case(each, failed)  # type: ignore[misc]
        elif isinstance(each, type) and name.startswith("Test"):
            yield from _of_class(each, fixtures)
        elif isinstance(each, types.FunctionType) and name.startswith("test") and name not in called:
            yield from _of_function(each, each, fixtures)


def _fixtures_in(names: Mapping[str, Any]) -> dict[str, Any]:
    functions = {name: each for name, each in names.items() if isinstance(each, types.FunctionType)}
    return {name: each for name, each in functions.items() if hasattr(each, "_is_fixture_")}


def _run_case(case: type[unittest.TestCase], failed: Callable[[BaseException], object]) -> None:
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(_Result(failed))


class _Result(unittest.TestResult):
    def __init__(self, failed: Callable[[BaseException], object]) -> None:
        super().__init__()
        self._failed = failed

    def _take(self, error: Any) -> None:
        self._failed(error[1])
        if isinstance(error[1], Unjudged):
            self.stop()

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802  unittest's name
        self._take(err)

    addFailure = addError

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802  unittest's name
        if err is not None:
            self._take(err)


def _of_class(kind: type, fixtures: Mapping[str, Any]) -> Iterator[Test]:
    own = {**fixtures, **_fixtures_in(vars(kind))}
    if hasattr(kind, "setup_class"):
        yield lambda: kind.setup_class()
    for name, function in list(vars(kind).items()):
        if isinstance(function, types.FunctionType) and name.startswith("test"):
            yield from _of_function(_Method(kind, function), function, own)


class _Method:
    """A test method, each time of a new object."""

    def __init__(self, kind: type, function: Callable[..., object]) -> None:
        self.kind, self.function = kind, function

    def __call__(self, **given: Any) -> object:
        made = self.kind()
        _call_first(made, _SET_UP, self.function)
        try:
            return self.function(made, **given)
        finally:
            _call_first(made, _TEAR_DOWN, self.function)


def _call_first(made: Any, names: tuple[str, ...], function: Any) -> None:
    found = next((getattr(made, name) for name in names if hasattr(made, name)), None)
    if found is not None:
        found(*([function] if inspect.signature(found).parameters else []))


def _of_function(call: Any, function: Any, fixtures: Mapping[str, Any]) -> Iterator[Test]:
    marks = [*getattr(getattr(call, "kind", None), "_marks_", []), *getattr(function, "_marks_", [])]
    if any(name == "skip" or (name == "skipif" and given and given[0]) for name, given, _ in marks):
        return
    rows: list[dict[str, Any]] = [{}]
    for name, given, named in marks:
        if name == "parametrize":
            names = given[0] if given else named["argnames"]
            values = given[1] if len(given) > 1 else named["argvalues"]
            rows = [{**row, **each} for row in rows for each in _parameters(names, values)]
    wanted = [each for each in inspect.signature(function).parameters if each != "self"]
    for row in rows:
        yield lambda row=row: _call(call, function, row, wanted, fixtures)  # type: ignore[misc]


def _parameters(names: Any, values: Any) -> Iterator[dict[str, Any]]:
    split = [each.strip() for each in names.split(",") if each.strip()] if isinstance(names, str) else list(names)
    for each in values:
        one = len(split) == 1 and type(each).__name__ != "_Parameters"
        yield dict(zip(split, [each] if one else each, strict=True))


def _call(call: Any, function: Any, row: Mapping[str, Any], wanted: list[str], fixtures: Mapping[str, Any]) -> None:
    with contextlib.ExitStack() as stack:
        given = {name: row[name] if name in row else _fixture(name, fixtures, stack) for name in wanted}
        for name, each in fixtures.items():
            if each._is_fixture_.get("autouse") and name not in given:
                _fixture(name, fixtures, stack)
        try:
            made = call(**given)
            if inspect.iscoroutine(made):
                import asyncio

                asyncio.run(made)
        except Skipped:
            return


def _fixture(name: str, fixtures: Mapping[str, Any], stack: contextlib.ExitStack) -> Any:
    if name in fixtures:
        function = fixtures[name]
        names = [each for each in inspect.signature(function).parameters if each != "self"]
        given = {each: _fixture(each, fixtures, stack) for each in names}
        bound = (
            function if "self" not in inspect.signature(function).parameters else lambda **more: function(None, **more)
        )
        if not inspect.isgeneratorfunction(function):
            return bound(**given)
        return stack.enter_context(contextlib.contextmanager(bound)(**given))
    if name == "capsys":
        return stack.enter_context(_captured())
    if name == "monkeypatch":
        return stack.enter_context(_patching())
    raise Unjudged(f"a test takes a fixture that is not known: {name}")


class _Capture:
    def __init__(self) -> None:
        self.out = io.StringIO()

    def readouterr(self) -> Any:
        found = types.SimpleNamespace(out=self.out.getvalue(), err="")
        self.out.seek(0)
        self.out.truncate()
        return found


@contextlib.contextmanager
def _captured() -> Iterator[_Capture]:
    capture = _Capture()
    with contextlib.redirect_stdout(capture.out):
        yield capture


class _Patches:
    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack

    def setattr(self, target: Any, name: Any, *value: Any, raising: bool = True) -> None:
        """As pytest has it: of an object, or of a dotted name."""
        from unittest import mock

        if isinstance(target, str):
            self._stack.enter_context(mock.patch(target, name, create=not raising))
        else:
            self._stack.enter_context(mock.patch.object(target, name, *value, create=not raising))


@contextlib.contextmanager
def _patching() -> Iterator[_Patches]:
    before = sys.stdin, sys.stdout
    with contextlib.ExitStack() as stack:
        yield _Patches(stack)
    sys.stdin, sys.stdout = before

"""What tests use of pytest, for a sandbox in which it is not installed.

Place in the flow: script → **pytest_names**, run → fixtures.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

__all__ = ["as_module"]


class Skipped(BaseException):
    """A test that is not to run here."""


class _Caught:
    """What `pytest.raises` binds."""

    value: Any = None

    @property
    def type(self) -> Any:
        return type(self.value)

    def match(self, pattern: str) -> bool:
        assert re.search(pattern, str(self.value)), f"{pattern!r} is not in {str(self.value)!r}"
        return True

    def __str__(self) -> str:
        return str(self.value)


class _Raises:
    def __init__(self, kinds: Any, match: str | None) -> None:
        self.kinds, self.match, self.caught = kinds, match, _Caught()

    def __enter__(self) -> _Caught:
        return self.caught

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        if kind is None:
            raise AssertionError(f"did not raise {self.kinds}")
        if not issubclass(kind, self.kinds):
            return False
        self.caught.value = error
        if self.match is not None:
            self.caught.match(self.match)
        return True


def raises(kinds: Any, *call: Any, match: str | None = None, **named: Any) -> Any:
    context = _Raises(kinds, match)
    if not call:
        return context
    with context as caught:
        call[0](*call[1:], **named)
    return caught


@contextmanager
def warns(*kinds: Any, match: str | None = None) -> Any:
    """Warnings of the program stay where it is."""
    yield []


class approx:  # noqa: N801  its name is pytest's
    """A number, or numbers in a list or mapping, to compare with."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expected: Any, rel: float | None = None, abs: float | None = None, nan_ok: bool = False) -> None:
        self.expected, self.rel, self.abs, self.nan_ok = expected, rel, abs, nan_ok

    def __eq__(self, actual: object) -> bool:
        return self._same(_plain(actual), _plain(self.expected))

    def __repr__(self) -> str:
        return f"approx({self.expected!r})"

    def _same(self, actual: Any, expected: Any) -> bool:
        if isinstance(expected, Mapping):
            return (
                isinstance(actual, Mapping)
                and actual.keys() == expected.keys()
                and all(self._same(actual[key], expected[key]) for key in expected)
            )
        if isinstance(expected, list | tuple):
            return (
                isinstance(actual, list | tuple)
                and len(actual) == len(expected)
                and all(map(self._same, actual, expected))
            )
        if isinstance(expected, bool | str | None) or isinstance(actual, bool | str | None):
            return bool(actual == expected)
        actual, expected = (float(each) if isinstance(each, Decimal) else each for each in (actual, expected))
        try:
            if actual == expected or (self.nan_ok and actual != actual and expected != expected):
                return True
            share = self.rel if self.rel is not None else 0.0 if self.abs is not None else 1e-6
            limit = max(share * abs(expected), self.abs if self.abs is not None else 1e-12)
            return bool(abs(actual - expected) <= limit) and limit != float("inf")
        except (TypeError, OverflowError):
            return False


def _plain(value: Any) -> Any:
    return value.tolist() if type(value).__module__ == "numpy" and hasattr(value, "tolist") else value


def fail(reason: str = "", **_: Any) -> None:
    raise AssertionError(reason)


def skip(reason: str = "", **_: Any) -> None:
    raise Skipped(reason)


def importorskip(name: str, *_: Any, **__: Any) -> Any:
    try:
        __import__(name)
    except ImportError:
        raise Skipped(name) from None
    return sys.modules[name]


def fixture(function: Any = None, **options: Any) -> Any:
    """Marks a function as one that makes what tests take by its name."""
    if function is None:
        return lambda each: fixture(each, **options)
    function._is_fixture_ = options
    return function


def param(*values: Any, **_: Any) -> Any:
    return _Parameters(values)


class _Parameters(tuple):  # type: ignore[type-arg]
    """`pytest.param`."""


class _Marks:
    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *arguments, **named: _mark(name, arguments, named)


def _mark(name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    if len(arguments) == 1 and callable(arguments[0]) and not named:  # without parentheses
        return _with_mark(arguments[0], (name, (), {}))
    return lambda function: _with_mark(function, (name, arguments, named))


def _with_mark(function: Any, mark: tuple[str, tuple[Any, ...], dict[str, Any]]) -> Any:
    function._marks_ = [mark, *getattr(function, "_marks_", [])]
    return function


def as_module() -> types.ModuleType:
    """The module `pytest`."""
    module = types.ModuleType("pytest")
    names = (raises, warns, approx, fail, skip, importorskip, fixture, param)
    module.__dict__.update({each.__name__: each for each in names})
    module.__dict__.update(mark=_Marks(), main=lambda *_, **__: 0, skip_exception=Skipped, Skipped=Skipped)
    return module

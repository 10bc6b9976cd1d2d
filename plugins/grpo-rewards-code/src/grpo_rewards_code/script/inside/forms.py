"""Forms of what is more than plain data, beside those of `executor/values.py`: exact types of the standard library and
of numpy that are rebuilt from data, and functions and classes that both sides have, by their names.

Place in the flow: peer → **forms** → values.
"""

from __future__ import annotations

import builtins
import datetime
import importlib
import types
from collections import Counter, namedtuple
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Form", "form_of", "known", "read_form"]

Form = tuple[str, object]

_SHARED = frozenset({"builtins", "collections", "datetime", "decimal", "fractions", "functools", "math", "operator"})
"""Modules whose functions and classes are handed over by name."""
_RUNS_CODE = frozenset({"eval", "exec", "compile", "open", "input", "__import__", "globals", "breakpoint"})
_NUMBERS = "biufc"


def form_of(value: Any) -> Form | None:
    """The form of a value that is not exactly of a built-in type; None where it has none here."""
    kind = type(value)
    if kind.__module__ == "numpy" and hasattr(value, "tolist"):
        if kind.__name__ == "ndarray" and value.dtype.kind in _NUMBERS:
            return "numpy", [value.dtype.str, value.tolist()]
        return "plain", value.tolist()
    if kind is Counter:
        return "counter", dict(value)
    if isinstance(value, tuple) and isinstance(getattr(kind, "_fields", None), tuple):
        return "named", [kind.__name__, list(kind._fields), list(value)]
    if kind in (datetime.date, datetime.datetime, datetime.time):
        return kind.__name__, value.isoformat()
    if kind is datetime.timedelta:
        return "timedelta", [value.days, value.seconds, value.microseconds]
    if isinstance(value, types.TracebackType):
        return "plain", None
    name = _shared_name(value)
    return None if name is None else ("known", name)


def read_form(kind: str, content: Any) -> object:
    """What a form stands for; `KeyError` for a kind that is not known."""
    return _READERS[kind](content)


def known(name: str) -> object:
    """What both sides call so."""
    module, _, rest = name.partition(":")
    if module not in _SHARED or rest in _RUNS_CODE or not rest.isidentifier():
        raise KeyError(name)
    return getattr(importlib.import_module(module), rest)


def _shared_name(value: object) -> str | None:
    if value is NotImplemented or value is Ellipsis:
        return f"builtins:{value!r}"
    if not isinstance(value, type | types.BuiltinFunctionType | types.FunctionType):
        return None
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", "")
    module = {"_operator": "operator", "_functools": "functools", "_collections": "collections"}.get(module, module)  # type: ignore[arg-type]
    if module not in _SHARED or name in _RUNS_CODE:
        return None
    found = getattr(builtins if module == "builtins" else importlib.import_module(module), name, None)
    return f"{module}:{name}" if found is value else None


def _array(content: Any) -> object:
    kind, items = content
    try:
        numpy = importlib.import_module("numpy")
    except ImportError:
        return items
    if not isinstance(kind, str) or len(kind) > 8 or kind.lstrip("<>|=")[:1] not in _NUMBERS:
        raise KeyError(kind)
    return numpy.array(items, dtype=kind)


def _named(content: Any) -> object:
    name, fields, items = content
    return namedtuple(name, fields, rename=True)(*items)


_READERS: Mapping[str, Callable[[Any], object]] = {
    "numpy": _array,
    "plain": lambda content: content,
    "counter": lambda content: Counter(dict(content)),
    "named": _named,
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": lambda content: datetime.timedelta(*content),
    "known": known,
}

"""What the other side is told of an object that stays here: what it is, its name, and what can be done with it.

Nothing of what it holds: no text of its documentation, no default, no source.

Place in the flow: peer → **describe** → stubs (on the other side).
"""

from __future__ import annotations

import functools
import types
from typing import Any

__all__ = ["describe", "is_callable"]

_CALLABLE = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    functools.partial,
    functools._lru_cache_wrapper,
)


_PYTHON = ("builtins", "collections", "functools", "itertools", "operator", "datetime", "decimal", "fractions")


def is_callable(value: object) -> bool:
    """Whether something is a function or the like: to be called and nothing else."""
    return isinstance(value, _CALLABLE)


def describe(value: Any, holds_data: bool) -> object:
    """The description, as data with further objects in it."""
    if isinstance(value, type):
        return ["class", value.__name__, [each for each in value.__bases__ if _counts(each)], _names(value)]
    if is_callable(value):
        return ["function", getattr(value, "__name__", type(value).__name__)]
    if isinstance(value, types.ModuleType):
        return ["function", value.__name__]  # nothing of a module is given away
    kind = type(value)
    if kind.__module__ in _PYTHON:  # both sides have the class, and only this one the object
        return ["instance", [kind.__name__, _names(kind)], holds_data]
    return ["instance", kind, holds_data]


def _counts(base: type) -> bool:
    return base is not object and (base.__module__ != "builtins" or issubclass(base, BaseException))


def _names(kind: type) -> list[str]:
    """Methods that are not those of every object."""
    found = []
    for name in dir(kind):
        value = getattr(kind, name, None)
        if name in ("__hash__",) and value is None:
            found.append("no-hash")
        elif (
            callable(value)
            and not isinstance(value, type)
            and value is not getattr(object, name, None)
            and getattr(value, "__objclass__", None) is not object
        ):
            found.append(name)
    return found

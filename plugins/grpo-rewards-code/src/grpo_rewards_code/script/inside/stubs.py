"""Stubs: objects that look like those of the other side and have everything done there.

A class of the other side is a class here, with the special methods that it has there, so that `isinstance`, `len`,
`for`, `in`, operators and `with` work. On the script's side (`Peer.decides`) an object of the program never says
whether it equals plain data, is more than it or holds it, unless the script made the object by calling its class.

Place in the flow: script → **stub** → peer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["SPECIALS", "Remote", "RemoteFunction", "RemoteType", "Said", "Unjudged", "make_stub"]

_PLAIN_NAMES = frozenset(
    name for kind in (str, int, float, complex, bytes, list, tuple, dict, set) for name in dir(kind)
)
# fmt: off
_SWAPPED = (
    "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "xor",
    "or",
)
_UNARY = (
    "len", "length_hint", "iter", "next", "reversed", "getitem", "setitem", "delitem", "missing", "bool", "str", "repr",
    "format", "bytes", "int", "float", "complex", "index", "round", "trunc", "floor", "ceil", "abs", "neg", "pos",
    "invert", "hash", "enter", "exit", "call", "aiter", "anext", "aenter", "aexit", "copy", "deepcopy",
)
# fmt: on
_WITH_PLAIN = frozenset(
    ["__lt__", "__le__", "__gt__", "__ge__", "__contains__"]
    + [f"__{prefix}{name}__" for name in _SWAPPED for prefix in ("", "r", "i")]
)
"""What could say that plain data is right."""
_OTHERS = frozenset(f"__{name}__" for name in _UNARY)
SPECIALS = _WITH_PLAIN | _OTHERS | {"__eq__"}
"""What is done by the other side at all."""


class Unjudged(BaseException):
    """The script cannot be judged; the reason is for a person."""


class Said(int):
    """A truth value that an object which a function returned says of itself: no verdict can rest on it."""

    def __bool__(self) -> bool:
        raise Unjudged("a test asks an object that the program returned whether it is right")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int) and other in (0, 1):
            bool(self)
        return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__
    __int__ = __index__ = __bool__


class RemoteType(type):
    """The type of classes that stand for those of the other side."""

    _peer_: Any
    _number_: int
    _methods_: frozenset[str]

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        made = cls._peer_.ask("call", cls._number_, arguments, named)
        if isinstance(made, Remote):
            made.__dict__["_asked_"] = True
        return made

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        found = cls._peer_.ask("attribute", cls._number_, [name])
        if isinstance(found, RemoteFunction):
            found._of_ = cls
        elif isinstance(found, Remote) and type(found) is cls:
            found.__dict__["_asked_"] = True
        return found

    def __iter__(cls) -> Any:  # of an enumeration
        return iter(cls._peer_.ask("members", cls._number_))

    def __len__(cls) -> int:
        return len(cls._peer_.ask("members", cls._number_))

    def __getitem__(cls, key: Any) -> Any:
        return cls._peer_.ask("item", cls._number_, [key])

    def __bool__(cls) -> bool:
        return True


class Remote:
    """An object of the other side."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        own = self.__dict__
        if name in type(self)._methods_:  # type: ignore[attr-defined]
            ask = own["_peer_"].ask
            return _Method(self, name, lambda given, named: ask("method", own["_number_"], [name, *given], named))
        found = own["_peer_"].ask("attribute", own["_number_"], [name])
        if isinstance(found, RemoteFunction):
            return _Method(self, name, lambda given, named: found(*given, **named))
        return _said(self, name, found)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__") or name == "of_program":
            object.__setattr__(self, name, value)
        else:
            self.__dict__["_peer_"].ask("set", self.__dict__["_number_"], [name, value])

    def __delattr__(self, name: str) -> None:
        self.__dict__["_peer_"].ask("delete", self.__dict__["_number_"], [name])

    def __eq__(self, other: object) -> Any:
        if self is other:
            return True
        own = self.__dict__
        if own["_peer_"].decides and not isinstance(other, Remote):
            return bool(own.get("_data_")) and own["_peer_"].ask("data", own["_number_"]) == other
        return own["_peer_"].ask("special", own["_number_"], ["__eq__", other])

    def __ne__(self, other: object) -> Any:
        same = self == other
        return same if same is NotImplemented else not same

    __hash__ = object.__hash__


class _Method:
    """A method of an object of the other side."""

    def __init__(self, stub: Remote, name: str, call: Callable[[Any, Any], Any]) -> None:
        self.__self__, self.__name__, self._call = stub, name, call

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return _said(self.__self__, self.__name__, self._call(arguments, named))

    def __bool__(self) -> bool:
        return bool(_said(self.__self__, self.__name__, True))


class RemoteFunction:
    """A function of the other side."""

    _of_: Any = None

    def __init__(self, peer: Any, number: int, name: str) -> None:
        self.__dict__.update(_peer_=peer, _number_=number, __name__=name, __qualname__=name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        made = self.__dict__["_peer_"].ask("call", self.__dict__["_number_"], arguments, named)
        if self._of_ is not None and type(made) is self._of_:
            made.__dict__["_asked_"] = True
        return made

    def __getattr__(self, name: str) -> Any:
        return self.__dict__["_peer_"].ask("attribute", self.__dict__["_number_"], [name])


RemoteFunction.__doc__ = property(lambda self: self.__getattr__("__doc__"))  # type: ignore[assignment]


def make_stub(peer: Any, number: int, description: Any) -> Any:
    """The stub of an object of the other side, of the description that came with its number."""
    if description[0] == "function":
        return RemoteFunction(peer, number, str(description[1]))
    if description[0] == "class":
        return _make_class(peer, number, *description[1:])
    _, kind, holds_data = description
    if isinstance(kind, list):
        kind = _make_class(peer, -1, kind[0], [], kind[1])
    if not isinstance(kind, RemoteType):
        raise ValueError("not an object's data")
    made = object.__new__(kind) if not issubclass(kind, BaseException) else kind.__new__(kind)
    made.__dict__.update(_peer_=peer, _number_=number, _data_=bool(holds_data), _asked_=False)
    return made


def _make_class(peer: Any, number: int, name: str, bases: list[Any], names: list[str]) -> RemoteType:
    parents = tuple(each for each in bases if isinstance(each, RemoteType) or _is_error(each))
    if not any(isinstance(each, RemoteType) for each in parents):
        parents = (Remote, *parents)
    members: dict[str, Any] = {"__module__": "solution", "__doc__": None}
    for each in names:
        if each in _WITH_PLAIN:
            members[each] = _judging(each)
        elif each in _OTHERS:
            members[each] = _special(each)
    if any(map(_is_error, parents)) or any(issubclass(each, BaseException) for each in parents):
        members["__str__"] = lambda self: self.__dict__.get("_message_", "")
        members.pop("__repr__", None)
    if "no-hash" in names:
        members["__hash__"] = None
    elif "__hash__" not in members:
        members["__hash__"] = object.__hash__
    made = RemoteType(str(name), parents, members)
    type.__setattr__(made, "_peer_", peer)
    type.__setattr__(made, "_number_", number)
    type.__setattr__(made, "_methods_", frozenset(each for each in names if not each.startswith("__")))
    return made


def _is_error(kind: Any) -> bool:
    return isinstance(kind, type) and not isinstance(kind, RemoteType) and issubclass(kind, BaseException)


def _special(name: str) -> Callable[..., Any]:
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        return self.__dict__["_peer_"].ask("special", self.__dict__["_number_"], [name, *arguments], named)

    return method


def _judging(name: str) -> Callable[..., Any]:
    def method(self: Any, other: Any, *more: Any) -> Any:
        own = self.__dict__
        if own["_peer_"].decides and not own.get("_asked_") and not isinstance(other, Remote):
            if own.get("_data_"):
                return getattr(own["_peer_"].ask("data", own["_number_"]), name)(other, *more)
            raise TypeError(f"{name}: a {type(self).__name__} that the program returned is no plain data")
        found = own["_peer_"].ask("special", own["_number_"], [name, other, *more])
        if isinstance(found, Remote) and type(found) is type(self):
            found.__dict__["_asked_"] = own.get("_asked_")
        return found

    return method


def _said(stub: Remote, name: str, value: Any) -> Any:
    """What an object says of itself, where that can be taken as it is."""
    own = stub.__dict__
    if not own["_peer_"].decides or own.get("_asked_") or not isinstance(value, bool):
        return value
    if name in _PLAIN_NAMES:
        raise TypeError(f"{name}: a {type(stub).__name__} that the program returned is no plain data")
    return Said(value)

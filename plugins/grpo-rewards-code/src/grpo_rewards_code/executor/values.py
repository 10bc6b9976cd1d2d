"""Arguments and results as data: text that says what a value is, and nothing that runs when it is read.

A program's result is rebuilt outside as exact built-in types, so that no method of its own (an `__eq__`, a `__sub__`)
comes along; a subclass of a built-in type is taken for the data it holds. Types of the standard library that are equal
to other things than these (Decimal, Fraction, deque, OrderedDict) are kept. What has no data form is an `Opaque`, equal
to nothing. Needs the standard library of Python 3.8 only: this file also runs beside the program, and at services.
"""

from __future__ import annotations

import json
import math
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

__all__ = ["Opaque", "TooLargeError", "decode", "encode"]

_DEEPEST = 200
_SHORT_INTEGER = 10**15
_LONGEST_DECIMAL_CHARACTERS = 1_000
_LONGEST_FRACTION_BITS = 4_000  # of its numerator and denominator, whose common divisor takes quadratic time
_EXACT = frozenset(
    {str, int, float, complex, bytes, list, tuple, dict, set, frozenset, range, deque, OrderedDict, Decimal, Fraction}
)
_MOST_EQUAL_HASHES = 64
_SMALL_TABLE = 1_000
_MOST_MEMBERS = 50_000
"""Of all larger tables of a value, where keys are not text: hashes of numbers can be chosen so that a table of them
takes quadratic time, though no two are equal."""


class TooLargeError(Exception):
    """A value whose data form is larger than allowed."""


class Opaque:
    """A value without data form. Equal to nothing, itself included."""

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        self.what = what

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<{self.what}>"


class _Budget:
    """What is left for a value's text, and how what is no plain data is written."""

    __slots__ = ("left", "other")

    def __init__(self, left: int, other: Callable[[object], object] | None) -> None:
        self.left = left
        self.other = other


class _Rest:
    """How many members further tables may have, and how forms that are not known here are read."""

    __slots__ = ("members", "other")

    def __init__(self, other: Callable[[str, Any], object] | None) -> None:
        self.members = _MOST_MEMBERS
        self.other = other


def encode(value: object, largest_bytes: int = 1 << 26, other: Callable[[object], object] | None = None) -> str:
    """ASCII text for a value; `TooLargeError` when it would be longer than that.

    `other` may give a form, `[kind, value]`, for what is not exactly of a built-in type, or None.
    """
    budget = _Budget(largest_bytes, other)
    text = json.dumps(_form(value, budget, 0), separators=(",", ":"))
    if len(text) > largest_bytes:
        raise TooLargeError
    return text


def decode(text: str, other: Callable[[str, Any], object] | None = None) -> Any:
    """The value of a text that `encode` wrote, or a program that imitates it; `ValueError` when it is no such text.

    `other` makes what a form stands for that only it knows, of its kind and value.
    """
    try:
        return _value(json.loads(text), _Rest(other))
    except (RecursionError, KeyError, IndexError, TypeError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"not a value's data: {type(error).__name__}") from error


def _form(value: object, budget: _Budget, depth: int) -> object:
    """Plain JSON for the plainest values, `[kind, content]` for all others."""
    budget.left -= 2
    if budget.left < 0:
        raise TooLargeError
    if value is None or value is True or value is False:
        return value
    if depth > _DEEPEST:
        return ["opaque", "nested too deeply"]
    if budget.other is not None and type(value) not in _EXACT:
        form: Any = budget.other(value)
        if form is not None:
            return [form[0], _form(form[1], budget, depth + 1)]
    if isinstance(value, str):
        content = str.__str__(value)
        budget.left -= len(content)
        return content
    if isinstance(value, int):
        return _integer_form(int.__index__(value), budget)
    if isinstance(value, float):
        return _float_form(float.__float__(value))
    return _other_form(value, budget, depth + 1)


def _integer_form(value: int, budget: _Budget) -> object:
    if -_SHORT_INTEGER < value < _SHORT_INTEGER:
        return value
    budget.left -= value.bit_length() // 4
    if budget.left < 0:
        raise TooLargeError
    return ["int", hex(value)]  # in linear time, and of any length


def _float_form(value: float) -> object:
    return ["float", value.hex() if math.isfinite(value) else repr(value)]


def _other_form(value: object, budget: _Budget, depth: int) -> object:
    if isinstance(value, list):
        return ["list", [_form(each, budget, depth) for each in list.__iter__(value)]]
    if isinstance(value, tuple):
        return ["tuple", [_form(each, budget, depth) for each in tuple.__iter__(value)]]
    if isinstance(value, deque):
        return ["deque", [_form(each, budget, depth) for each in deque.__iter__(value)]]
    if isinstance(value, dict):
        return [
            "ordered" if isinstance(value, OrderedDict) else "dict",
            [[_form(key, budget, depth), _form(item, budget, depth)] for key, item in dict.items(value)],
        ]
    if isinstance(value, set):
        return ["set", [_form(each, budget, depth) for each in set.__iter__(value)]]
    if isinstance(value, frozenset):
        return ["frozenset", [_form(each, budget, depth) for each in frozenset.__iter__(value)]]
    if isinstance(value, (bytes, bytearray)):
        budget.left -= 2 * len(value)
        return ["bytes", bytes(value).hex()]
    if isinstance(value, complex):
        return ["complex", [_float_form(value.real), _float_form(value.imag)]]
    if isinstance(value, Decimal):
        return _decimal_form(value, budget)
    if isinstance(value, Fraction):
        return _fraction_form(value, budget)
    if type(value) is range:
        return ["range", [_integer_form(each, budget) for each in (value.start, value.stop, value.step)]]
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return _form(value.tolist(), budget, depth)
    return ["opaque", type(value).__name__[:100]]


def _decimal_form(value: Decimal, budget: _Budget) -> object:
    text = Decimal.__str__(value)
    budget.left -= len(text)
    return ["decimal", text] if _is_decimal(text) else ["opaque", "Decimal"]


def _is_decimal(text: str) -> bool:
    """Not a number that raises in a comparison, nor one that takes long."""
    return len(text) <= _LONGEST_DECIMAL_CHARACTERS and "sNaN" not in text


def _fraction_form(value: Fraction, budget: _Budget) -> object:
    parts = value._numerator, value._denominator  # type: ignore[attr-defined]
    if not all(isinstance(each, int) and int.bit_length(each) <= _LONGEST_FRACTION_BITS for each in parts):
        return ["opaque", "Fraction"]
    return ["fraction", [_integer_form(int.__index__(each), budget) for each in parts]]


def _value(form: object, left: _Rest) -> Any:
    if form is None or isinstance(form, (bool, int, str)):
        return form
    if not isinstance(form, list) or len(form) != 2:
        raise ValueError("not a value's data")
    kind, content = form
    if left.other is not None and kind not in _KINDS:
        return left.other(kind, _value(content, left))
    return _KINDS[kind](content, left)


def _set(content: Iterable[object], left: _Rest) -> object:
    members = [_value(each, left) for each in content]
    return Opaque("set that takes long to build") if _is_slow(members, left) else set(members)


def _frozenset(content: Iterable[object], left: _Rest) -> object:
    members = _set(content, left)
    return frozenset(members) if isinstance(members, set) else members


def _dict(content: Iterable[tuple[object, object]], left: _Rest) -> object:
    keys_and_items = [(_value(key, left), _value(item, left)) for key, item in content]
    if _is_slow([key for key, _ in keys_and_items], left):
        return Opaque("dict that takes long to build")
    return dict(keys_and_items)


def _ordered(content: Iterable[tuple[object, object]], left: _Rest) -> object:
    members = _dict(content, left)
    return OrderedDict(members) if isinstance(members, dict) else members


def _decimal(content: str, left: _Rest) -> object:
    text = str.lower(content)
    return Decimal(text) if _is_decimal(content) and "s" not in text else Opaque("Decimal")


def _fraction(content: list[object], left: _Rest) -> object:
    numerator, denominator = (_value(each, left) for each in content)
    if max(int.bit_length(numerator), int.bit_length(denominator)) > _LONGEST_FRACTION_BITS:
        return Opaque("Fraction")
    return Fraction(numerator, denominator)


def _is_slow(members: list[Any], left: _Rest) -> bool:
    """Whether a table of these may take quadratic time: it has many that are not text, or one hash for many."""
    if len(members) > _SMALL_TABLE and not all(isinstance(each, str) for each in members):
        left.members -= len(members)
        if left.members < 0:
            return True
    hashes = Counter(map(hash, members))
    return bool(hashes) and max(hashes.values()) > _MOST_EQUAL_HASHES


_KINDS: Mapping[str, Any] = {
    "int": lambda content, left: int(content, 16),
    "float": lambda content, left: float.fromhex(content),
    "list": lambda content, left: [_value(each, left) for each in content],
    "tuple": lambda content, left: tuple(_value(each, left) for each in content),
    "dict": _dict,
    "ordered": _ordered,
    "deque": lambda content, left: deque(_value(each, left) for each in content),
    "decimal": _decimal,
    "fraction": _fraction,
    "set": _set,
    "frozenset": _frozenset,
    "bytes": lambda content, left: bytes.fromhex(content),
    "complex": lambda content, left: complex(_value(content[0], left), _value(content[1], left)),
    "range": lambda content, left: range(*(_value(each, left) for each in content)),
    "opaque": lambda content, left: Opaque(str(content)[:200]),
}

"""JSON as RFC 8259 defines it: a key twice, NaN, Infinity and numbers beyond floats, which Python's reader lets through
or rounds to infinity, are errors."""

from __future__ import annotations

import json
import math
from typing import Any

__all__ = ["parse_json"]


def parse_json(text: str) -> Any:
    """The value of a JSON text. Raises `ValueError`, a `json.JSONDecodeError` where the text is no JSON at all, and
    `RecursionError` for absurd nesting."""
    return _DECODER.decode(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {json.dumps(twice)} is there twice")
    return values


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is too large a number")
    return value


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON; write null")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_number, parse_constant=_constant)

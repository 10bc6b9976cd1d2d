"""Numbers of a Countdown problem as datasets hold them: integers, floats, text, arrays, lists as text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from fractions import Fraction

__all__ = ["read_number", "read_numbers"]

_NUMBER = re.compile(r"[+-]?[0-9]{1,400}(\.[0-9]{1,400})?(/[0-9]{1,400})?")


def read_number(value: object) -> Fraction | None:
    """Read one number exactly (a float by its shortest decimal form: 0.1 is a tenth); None when it is not one."""
    scalar = getattr(value, "item", None)
    if callable(scalar) and getattr(value, "shape", None) == ():
        value = scalar()
    if isinstance(value, bool):
        return None
    if isinstance(value, int | Fraction):
        return Fraction(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return Fraction(value) if value.is_integer() else Fraction(repr(value))
    text = value.strip() if isinstance(value, str) else ""
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def read_numbers(value: object) -> tuple[Fraction, ...] | None:
    """Read a list of numbers, also as an array or as text (`[5, 4, 2]`, `5, 4, 2`); None when it is not one."""
    if isinstance(value, str):
        value = value.strip().strip("[]()").replace(",", " ").split()
    to_list = getattr(value, "tolist", None)
    if callable(to_list):
        value = to_list()
    if not isinstance(value, Iterable):
        return None
    read = [read_number(item) for item in value]
    numbers = [number for number in read if number is not None]
    return tuple(numbers) if len(numbers) == len(read) else None

"""YAML as recipes use it: plain data, the scalars of YAML 1.2, the line of every key, no key twice.

YAML 1.1, which PyYAML reads by default, takes `off` for false, `1e-6` for text and `1:30` for 90; the core schema of
YAML 1.2 does not. Tags and `<<` merges are left out: recipes have `extends`. Called by `files` and `overrides`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

__all__ = ["KeyPath", "Parsed", "RecipeSyntaxError", "all_paths", "parse_scalar", "parse_yaml"]

KeyPath = tuple[str | int, ...]
"""The way to a value: keys of mappings, positions in lists."""

_MAX_VALUES = 100_000
"""More than any recipe has; aliases of aliases reach it, and would otherwise fill the memory."""

_TAG = "tag:yaml.org,2002:"
_CORE_SCHEMA = (
    ("null", re.compile(r"~|null|Null|NULL|"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF")),
    ("int", re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"), list("-+0123456789")),
    (
        "float",
        re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"),
        list("-+.0123456789"),
    ),
)


class RecipeSyntaxError(Exception):
    """Text that is no YAML, or YAML that recipes do not take."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document as plain values, with the line of every value (from 1)."""

    value: Any
    lines: dict[KeyPath, int]


_HINTS = (
    ("'?'", "; between brackets, text with a ? needs quotes"),
    ("'\\t'", "; indent with spaces, not with tabs"),
)
"""What PyYAML's words mean for who wrote the file."""


class _Loader(yaml.SafeLoader):
    """Composes nodes only; their values are made here, so nothing of PyYAML's constructors runs."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  PyYAML's own registry


for _name, _pattern, _first in _CORE_SCHEMA:
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(f"^(?:{_pattern.pattern})$"), _first)


def parse_yaml(text: str) -> Parsed:
    """Read one document; an empty one is None.

    Raises RecipeSyntaxError, with the line, for bad YAML, a key twice or no text, a tag, or absurd size.
    """
    try:
        root = yaml.compose(text, Loader=_Loader)
        reader = _Reader()
        value = None if root is None else reader.read(root, ())
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        hint = next((hint for found, hint in _HINTS if found in (error.problem or "")), "")
        raise RecipeSyntaxError(" ".join(filter(None, (error.context, error.problem))) + hint, line) from None
    except yaml.YAMLError as error:
        raise RecipeSyntaxError(str(error).splitlines()[0]) from None
    except RecursionError:
        raise RecipeSyntaxError("values are nested too deeply, or contain themselves") from None
    return Parsed(value, reader.lines)


def parse_scalar(text: str) -> Any:
    """The value of one plain scalar: `1e-6` is a number, `off` is text, empty is None."""
    tag = next((name for name, pattern, _ in _CORE_SCHEMA if pattern.fullmatch(text)), "str")
    return _scalar(_TAG + tag, text, None)


def all_paths(value: Any) -> Iterator[KeyPath]:
    """The path of every value inside a value, mappings and lists included."""
    items: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        yield (key,)
        yield from ((key, *path) for path in all_paths(inner))


class _Reader:
    """Turns nodes into values and remembers lines."""

    def __init__(self) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._values = 0

    def read(self, node: yaml.Node, path: KeyPath) -> Any:
        line = node.start_mark.line + 1
        self._values += 1
        if self._values > _MAX_VALUES:
            raise RecipeSyntaxError(f"more than {_MAX_VALUES} values", line)
        self.lines.setdefault(path, line)
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [self.read(item, (*path, position)) for position, item in enumerate(node.value)]
        return _scalar(node.tag, str(node.value), line)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key, line = key_node.value, key_node.start_mark.line + 1
            if key_node.tag != _TAG + "str" or not isinstance(key, str):
                written = key if isinstance(key, str) else "a list or mapping"
                raise RecipeSyntaxError(f"the key {written} is not text; put it in quotes", line)
            if key in values:
                raise RecipeSyntaxError(
                    f"the key '{key}' is there twice, first in line {self.lines[(*path, key)]}", line
                )
            self.lines[(*path, key)] = line
            values[key] = self.read(value_node, (*path, key))
        return values


def _scalar(tag: str, text: str, line: int | None) -> Any:
    match tag.removeprefix(_TAG):
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return _integer(text, line)
        case "float":
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        case "str":
            return text
        case other:
            raise RecipeSyntaxError(f"tags such as {other} are not supported", line)


def _integer(text: str, line: int | None) -> int:
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    try:
        value = int(text[2:] if base != 10 else text, base)
        str(value)  # as messages and plans write it
        return value
    except ValueError:  # an explicit tag on other text, or more digits than Python converts
        raise RecipeSyntaxError(f"{text[:20]}{'…' if len(text) > 20 else ''} is not a whole number", line) from None

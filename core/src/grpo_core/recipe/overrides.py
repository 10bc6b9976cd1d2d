"""`--set key=value`: the dotted key and the value of one override.

A value that begins with a bracket or a quote is read as YAML (`[1, 2]`, `{a: b}`, `"7"`); any other is one plain
scalar, whole, so that `dataset.use=rows.jsonl#500` and `dataset.system=Answer: yes` mean what they say.
`layers` puts overrides on top of everything else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from grpo_core.recipe.syntax import RecipeSyntaxError, parse_scalar, parse_yaml

__all__ = ["Override", "dotted", "parse_override"]

_SEGMENT = r'(?:"[^"]+"|[^."=]+)'
_ASSIGNMENT = re.compile(rf"\s*({_SEGMENT}(?:\.{_SEGMENT})*)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Override:
    """One `--set`."""

    path: tuple[str, ...]
    """Keys from the outside in; a reward by its name."""
    value: Any
    """Plain YAML value."""


def parse_override(text: str) -> Override:
    """Take `a.b.c=value` apart; a key with a dot in it stands in double quotes: `dataset.columns."a.b"=question`.

    Raises RecipeSyntaxError.
    """
    match = _ASSIGNMENT.fullmatch(text)
    if match is None:
        raise RecipeSyntaxError(f"{text!r} is not key=value, as in trainer.learning_rate=1e-6")
    path = tuple(segment.strip().strip('"') for segment in re.findall(_SEGMENT, match[1]))
    try:
        return Override(path, _value(match[2].strip()))
    except RecipeSyntaxError as fault:
        hint = "text that begins with a bracket or a quote needs quotes around it"
        raise RecipeSyntaxError(f"{text!r}: the value is no YAML ({fault.message}); {hint}") from None


def _value(text: str) -> Any:
    return parse_yaml(text).value if text[:1] in set("[{\"'") and text else parse_scalar(text)


def dotted(path: tuple[str | int, ...]) -> str:
    """Write a path as `--set` reads it."""
    return ".".join(f'"{key}"' if isinstance(key, str) and re.search(r'[."=]', key) else str(key) for key in path)

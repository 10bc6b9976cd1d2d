"""Every setting as text: path, type, default and meaning, taken from the schema. For the documentation.

The values of one run and who set them are `explain`'s.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from grpo_core.recipe.layers import NAMED_LISTS
from grpo_core.recipe.ranges import bound_text
from grpo_core.recipe.schema import Recipe

__all__ = ["Setting", "settings", "settings_tables"]

_TYPES = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "any value"}
_BOUNDS = (
    (annotated_types.Ge, "≥", "ge"),
    (annotated_types.Gt, ">", "gt"),
    (annotated_types.Le, "≤", "le"),
    (annotated_types.Lt, "<", "lt"),
)
_NO_DEFAULT = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One key of a recipe."""

    path: str
    """`trainer.learning_rate`; entries of `rewards` as `rewards.NAME.weight`, and those of `dataset.mix` likewise."""
    type: str
    """In words, with bounds or choices."""
    default: str
    """As a recipe writes it; `required` where there is none."""
    meaning: str
    """One or two sentences."""


def settings(model: type[BaseModel] = Recipe, prefix: str = "") -> Iterator[Setting]:
    """Every setting below a section, in the order of the schema."""
    for name, field in model.model_fields.items():
        path = f"{prefix}{name}"
        inner = _section(field.annotation)
        if inner is not None:
            yield from settings(inner, f"{path}.NAME." if tuple(path.split(".")) in NAMED_LISTS else f"{path}.")
        else:
            yield Setting(
                path=path,
                type=_type(field.annotation, field.metadata),
                default=_default(field),
                meaning=" ".join((field.description or "").split()),
            )


def settings_tables() -> str:
    """Markdown: a heading and a table for each section."""
    sections: dict[str, list[Setting]] = {}
    for setting in settings():
        section, dot, _ = setting.path.partition(".")
        sections.setdefault(section if dot else "", []).append(setting)
    return "\n\n".join(_table(section, rows) for section, rows in sections.items()) + "\n"


def _table(section: str, rows: list[Setting]) -> str:
    heading = f"### `{section}`" if section else "### At the top"
    lines = [heading, "", "| Key | Type | Default | Meaning |", "| --- | --- | --- | --- |"]
    lines += [f"| `{row.path}` | {_cell(row.type)} | {_cell(row.default)} | {_cell(row.meaning)} |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _section(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _section(inner))), None)


def _type(annotation: Any, constraints: Sequence[object] = ()) -> str:
    if annotation in _TYPES:
        return f"{_TYPES[annotation]}{_bounds(constraints)}"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        info = arguments[1]
        return _type(arguments[0], info.metadata if isinstance(info, FieldInfo) else ())
    if origin is Literal:
        return ", ".join(f"`{choice}`" for choice in arguments)
    if origin is tuple:
        return f"list: {_type(arguments[0])}"
    if origin is dict:
        return f"mapping: {_type(arguments[0])} → {_type(arguments[1])}"
    words = [_type(inner, constraints) for inner in arguments if inner is not NoneType]
    return " or ".join([*words, "null"] if NoneType in arguments else words)


def _bounds(constraints: Sequence[object]) -> str:
    shown = [
        f"{sign} {bound_text(getattr(constraint, name))}"
        for kind, sign, name in _BOUNDS
        for constraint in constraints
        if isinstance(constraint, kind)
    ]
    return f" ({', '.join(shown)})" if shown else ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return _NO_DEFAULT
    value = field.get_default(call_default_factory=True)
    return f"`{json.dumps(value, ensure_ascii=False)}`"

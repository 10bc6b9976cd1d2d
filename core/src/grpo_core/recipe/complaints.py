"""What pydantic found wrong, said for people: the dotted path, the value, what is allowed, the nearest known key.

Serves the recipe and the options of plugins alike; knows models only by their fields.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from grpo_core.errors import Problem
from grpo_core.recipe.ranges import Because, bound_text
from grpo_core.recipe.syntax import KeyPath, parse_scalar

__all__ = ["complaints", "did_you_mean", "show_value"]

_SHOWN_CHARACTERS = 80

_NOT_WHAT_IT_MUST_BE = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number of a sane size",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "string_unicode": "text",
    "tuple_type": "a list",
    "list_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a mapping of keys to values",
    "mapping_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "none_required": "null",
}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
    "multiple_of": ("a multiple of", "multiple_of"),
}


def complaints(
    error: ValidationError,
    values: Mapping[str, Any],
    model: type[BaseModel],
    *,
    describe: Callable[[KeyPath], tuple[str, str | None]],
    what: str = "key",
) -> Iterator[tuple[KeyPath, Problem]]:
    """One problem a place; `describe` gives the dotted path to show and who set it, `what` what a key is called."""
    messages: dict[KeyPath, list[str]] = {}
    for item in _without_false_lengths(error.errors(include_url=False)):
        path = _place(item["loc"], values, missing=item["type"] == "missing")
        messages.setdefault(path, []).append(_message(item, path, model, what))
    for path, texts in messages.items():
        shown, origin = describe(path)
        yield path, Problem(path=shown, message=_joined(list(dict.fromkeys(texts))), origin=origin)


def _without_false_lengths(items: Sequence[ErrorDetails]) -> Iterator[ErrorDetails]:
    """Errors without those of lists that are too short only since pydantic does not count wrong entries."""
    for item in items:
        own = item["loc"]
        below = (each for each in items if len(each["loc"]) > len(own) and each["loc"][: len(own)] == own)
        if item["type"] != "too_short" or next(below, None) is None:
            yield item


def show_value(value: object) -> str:
    """A value as a recipe would write it, on one line and not too long."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = _plain(value)
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def _plain(value: object) -> str:
    try:
        return str(value)
    except ValueError:  # TOML reads hexadecimal numbers with more digits than Python writes
        return "a number of thousands of digits"


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """The end of a message about an unknown name: the nearest known one, else all of them."""
    near = get_close_matches(name, known, n=1)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"known: {', '.join(known)}" if known else "none is known here"


def _joined(alternatives: list[str]) -> str:
    """What each branch of a union asks for, the value that is none of it named once."""
    *others, last = alternatives
    value = last[last.find(", not ") :] if ", not " in last else ""
    return " or ".join([*(text.removesuffix(value) for text in others), last])


def _place(location: tuple[int | str, ...], values: Any, *, missing: bool) -> KeyPath:
    """Where in the values it is; pydantic puts names of its own (branches of a union) into a location."""
    path: list[str | int] = []
    for part in location:
        is_there = part in values if isinstance(values, Mapping) else isinstance(values, list | tuple)
        if is_there and (isinstance(values, Mapping) or (isinstance(part, int) and part < len(values))):
            values = values[part]
            path.append(part)
    if missing:
        path.append(location[-1])
    return tuple(path)


def _message(item: Any, path: KeyPath, model: type[BaseModel], what: str) -> str:
    kind, value, context = item["type"], show_value(item["input"]), item.get("ctx", {})
    if kind == "missing":
        return "required, but not set"
    if kind == "extra_forbidden":
        return _unknown_key(path, model, what)
    if kind == "literal_error":
        return _not_a_choice(item["input"], context["expected"])
    if kind in _NOT_WHAT_IT_MUST_BE:
        return f"must be {_NOT_WHAT_IT_MUST_BE[kind]}, not {value}{_without_quotes(kind, item['input'])}"
    if kind in _BOUNDS:
        words, key = _BOUNDS[kind]
        return f"must be {words} {bound_text(context[key])}, not {value}{_why(path, model, context[key])}"
    if kind == "too_short":
        least, there = context["min_length"], context["actual_length"]
        return f"must have at least {least}, not {there}" if there else f"is empty; give at least {least}"
    if kind in ("value_error", "assertion_error"):
        return str(context["error"])
    words = str(item["msg"]).replace("Input should be", "must be").removesuffix(".")
    return f"{words[:1].lower()}{words[1:]}, not {value}"


def _why(path: KeyPath, model: type[BaseModel], bound: float) -> str:
    """The end of a message about a number out of its range: the reason that its field gives. That a count begins with
    0, 1 or 2, and a share ends with 1, needs none."""
    if bound in (0, 1, 2):
        return ""
    section: type[BaseModel] | None = model
    *outer, name = [key for key in path if isinstance(key, str)] or [""]
    for key in outer:
        section = _inner_model(section, key) if section else None
    field = section.model_fields.get(name) if section else None
    reasons = [each.reason for each in (field.metadata if field else ()) if isinstance(each, Because)]
    return f": {reasons[0]}" if reasons else ""


def _without_quotes(kind: str, value: object) -> str:
    """The end of a message about text that would be right if it were no text."""
    meant = {"int_type": (int,), "float_type": (int, float), "bool_type": (bool,)}.get(kind, ())
    is_meant = isinstance(value, str) and type(parse_scalar(value.strip())) in meant
    return "; write it without quotes" if is_meant else ""


def _not_a_choice(value: object, expected: str) -> str:
    choices = [choice.strip("'") for choice in expected.replace(" or ", ", ").split(", ")]
    near = get_close_matches(str(value), choices, n=1)
    guess = f"; did you mean '{near[0]}'?" if near else ""
    return f"must be one of {', '.join(choices)}, not {show_value(value)}{guess}"


def _unknown_key(path: KeyPath, model: type[BaseModel], what: str) -> str:
    section: type[BaseModel] | None = model
    for key in path[:-1]:
        section = _inner_model(section, key) if section else None
    known = list(section.model_fields) if section else []
    key = str(path[-1])
    elsewhere = [] if get_close_matches(key, known, n=1) else list(_sections_with(key, model))
    if elsewhere:
        return f"unknown {what}; it belongs {elsewhere[0]}"
    return f"unknown {what}; {did_you_mean(key, known)}"


def _inner_model(model: type[BaseModel], key: str | int) -> type[BaseModel] | None:
    """The model of what is under a key; positions in lists stay with the model of their entries."""
    if isinstance(key, int):
        return model
    field = model.model_fields.get(key)
    return None if field is None else _model_in(field.annotation)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _model_in(inner))), None)


def _sections_with(key: str, model: type[BaseModel]) -> Iterator[str]:
    """Where in the model a key would be right."""
    if key in model.model_fields:
        yield "at the top"
    for name, field in model.model_fields.items():
        inner = _model_in(field.annotation)
        if inner is not None and key in inner.model_fields:
            yield f"under '{name}'"

"""Numbers, true and false are taken as they are written: pydantic alone would also read `t`, `on` or 1 as true, true as
1, and the text "3" as 3.

The sections of a recipe refuse these by themselves (`schema.Section`); here it is also found in the options of plugins,
whose models say nothing about it. A field with a validator of its own that comes before pydantic's is left to that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, PlainValidator, WrapValidator
from pydantic_core import InitErrorDetails, PydanticCustomError

from grpo_core.recipe.syntax import KeyPath

__all__ = ["misread", "misread_kind"]

_OWN = (BeforeValidator, PlainValidator, WrapValidator)


def misread_kind(annotation: Any, value: object) -> str | None:
    """pydantic's name of the error, `bool_type`, `int_type` or `float_type`, when a field that holds nothing but a
    truth value or a number is given another kind of scalar; None when there is none."""
    kinds = set(_alternatives(annotation)) - {NoneType}
    if kinds == {bool} and not isinstance(value, bool):
        return "bool_type" if isinstance(value, str | int | float) else None
    if kinds and kinds <= {int, float} and isinstance(value, str | bool):
        return "float_type" if float in kinds else "int_type"
    return None


def misread(model: type[BaseModel], values: Mapping[str, Any], path: KeyPath = ()) -> Iterator[InitErrorDetails]:
    """Every such value in the values of a model, also inside lists, mappings and models in it."""
    for name, field in model.model_fields.items():
        key = name if name in values else field.alias or name
        if key in values and not _has_own_reading(model, name):
            yield from _misread_in(field.annotation, values[key], (*path, key))


def _misread_in(annotation: Any, value: object, path: KeyPath) -> Iterator[InitErrorDetails]:
    kind = misread_kind(annotation, value)
    if kind is not None:
        yield InitErrorDetails(type=PydanticCustomError(kind, "another kind of value"), loc=path, input=value)
    for each in _alternatives(annotation):
        if isinstance(each, type) and issubclass(each, BaseModel) and isinstance(value, Mapping):
            yield from misread(each, value, path)
    inner = [each for each in _alternatives(annotation) if get_args(each)]
    if len(inner) == 1 and isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _misread_in(get_args(inner[0])[0], item, (*path, place))
    if len(inner) == 1 and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _misread_in(get_args(inner[0])[-1], item, (*path, key))


def _alternatives(annotation: Any) -> Iterator[Any]:
    """The branches of a union; of anything else itself."""
    if get_origin(annotation) is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for branch in get_args(annotation):
            yield from _alternatives(branch)
    else:
        yield annotation


def _has_own_reading(model: type[BaseModel], name: str) -> bool:
    decorators = model.__pydantic_decorators__.field_validators.values()
    is_decorated = any(each.info.mode != "after" and {name, "*"} & set(each.info.fields) for each in decorators)
    return is_decorated or any(isinstance(each, _OWN) for each in model.model_fields[name].metadata)

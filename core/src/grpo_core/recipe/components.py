"""From a reference and options in a recipe to a planned component: who provides it, what to import, options checked.

A component's options model is imported for that, its target is not: a target may need an engine or a GPU. Of an object
that the recipe names (`./mine.py:my_reward`) the source is read: looking at a recipe runs no code that it names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from grpo_core.errors import PluginError, Problem, RecipeError
from grpo_core.plugins.catalog import Catalog, Entry, missing_requirements
from grpo_core.plugins.outline import check_target
from grpo_core.plugins.references import Form, Reference, check_details, check_form, parse_reference
from grpo_core.plugins.specs import ComponentSpec, Kind, RolloutSpec, TrainerSpec
from grpo_core.plugins.targets import load_target
from grpo_core.recipe.complaints import complaints
from grpo_core.recipe.overrides import dotted
from grpo_core.recipe.plan import PlannedComponent
from grpo_core.recipe.scalars import misread
from grpo_core.recipe.syntax import KeyPath

__all__ = ["Found", "find_component", "plan_entry", "plan_object"]

FILE_PLUGIN_SUFFIX = ".py"
"""What the name of a one-file plugin (`--plugin FILE`) ends in; no distribution's does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a reference leads to."""

    reference: Reference
    """Taken apart."""
    entry: Entry | None = None
    """Its place in the catalog; None for an object in a file or module."""


def find_component(kind: Kind, text: str, *, catalog: Catalog) -> Found:
    """Look up a reward, a backend or a tracker; all but rewards, which may be an object in a file, are registered.

    Raises `UsageError` for another form of reference, `UnknownComponent` or `AmbiguousComponent` for a name.
    """
    allowed: tuple[Form, ...] = ("name", "object") if kind == "reward" else ("name",)
    what = f"a {kind}" if kind in ("reward", "tracker") else f"a {kind} backend"
    reference = check_details(check_form(parse_reference(text), allowed, what=what), ())
    return Found(reference=reference, entry=catalog.get(kind, reference.value) if reference.form == "name" else None)


def plan_entry(entry: Entry, options: Mapping[str, Any]) -> PlannedComponent:
    """Plan a registered component.

    Raises RecipeError with every wrong option, paths beginning with `options`, and `PluginError` when something it
    requires is not installed or its options model is broken.
    """
    spec = entry.spec
    assert isinstance(spec, ComponentSpec)
    missing = missing_requirements(spec)
    if missing:
        install = " ".join(f"'{text.split('|')[0].strip()}'" for text in missing)
        message = f"'{spec.name}' needs {', '.join(missing)}, not installed here"
        raise PluginError(message, hint=f"pip install {install}")
    is_file = entry.distribution.endswith(FILE_PLUGIN_SUFFIX)
    return PlannedComponent(
        name=entry.qualified_name,
        target=spec.target,
        options_model=spec.options,
        options=_checked_options(spec, options),
        distribution=None if is_file else entry.distribution,
        version=None if is_file else entry.version,
        capabilities=tuple(sorted(spec.capabilities)) if isinstance(spec, RolloutSpec | TrainerSpec) else (),
    )


def plan_object(reference: Reference, options: Mapping[str, Any]) -> PlannedComponent:
    """Plan an object in a file or module; it takes no options. Raises `BrokenReference` where its source says that it
    is not there; nothing is imported."""
    check_target(reference.value)
    if options:
        message = f"'{reference.text}' takes no options; only a component that a plugin registers does"
        raise RecipeError([Problem(path="options", message=message)])
    return PlannedComponent(name=reference.text, target=reference.value)


def _checked_options(spec: ComponentSpec, options: Mapping[str, Any]) -> dict[str, Any]:
    if spec.options is None:
        if options:
            message = f"'{spec.name}' takes no options, but has: {', '.join(options)}; remove them"
            raise RecipeError([Problem(path="options", message=message)])
        return {}
    model = load_target(spec.options)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise PluginError(f"'{spec.options}', the options of '{spec.name}', is no pydantic model", hint=_REPORT)
    return _validated(model, options)


_REPORT = "Report it to the author of the plugin."


def _validated(model: type[BaseModel], options: Mapping[str, Any]) -> dict[str, Any]:
    written = list(misread(model, options))
    errors = [ValidationError.from_exception_data(model.__name__, written)] if written else []
    try:
        validated = model.model_validate(dict(options), extra="forbid")
    except ValidationError as error:
        errors.append(error)
    if errors:
        raise RecipeError(_problems(model, options, errors))
    try:
        dumped = validated.model_dump(mode="json")
        json.dumps(dumped, allow_nan=False)
    except (PydanticSerializationError, ValueError) as error:
        message = f"these options cannot be written to plan.json: {str(error).splitlines()[0]}"
        raise RecipeError([Problem(path="options", message=message)]) from None
    return dumped


def _problems(model: type[BaseModel], options: Mapping[str, Any], errors: Iterable[ValidationError]) -> list[Problem]:
    def describe(path: KeyPath) -> tuple[str, None]:
        return dotted(("options", *path)), None

    found: dict[KeyPath, Problem] = {}
    for error in errors:
        found = dict(complaints(error, options, model, describe=describe, what="option")) | found
    return list(found.values())

"""From merged settings to a validated `Recipe`, or to every problem they have at once.

A recipe with a wrong value is examined on without that value, so that one mistake does not hide the next.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from grpo_core.errors import Problem, RecipeError
from grpo_core.recipe.checks import Finding, check
from grpo_core.recipe.complaints import complaints
from grpo_core.recipe.layers import Layer, display_path, list_of
from grpo_core.recipe.schema import Recipe
from grpo_core.recipe.syntax import KeyPath

__all__ = ["PLACEHOLDER", "Examined", "examine", "validate"]

PLACEHOLDER = "?"
"""What stands for a required text that is missing or wrong, while the rest is examined."""

_PLACEHOLDERS: Mapping[KeyPath, object] = {
    ("model",): {"path": PLACEHOLDER},
    ("model", "path"): PLACEHOLDER,
    ("dataset",): {"use": PLACEHOLDER},
    ("dataset", "use"): PLACEHOLDER,
    ("dataset", "mix"): [{"use": PLACEHOLDER}],
    ("rewards",): [{"use": PLACEHOLDER}],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """Settings looked at."""

    recipe: Recipe | None
    """The recipe without its wrong values; None when too little is left."""
    layer: Layer
    """The settings as given."""
    problems: tuple[Problem, ...]
    """Everything wrong."""
    bad: frozenset[KeyPath] = frozenset()
    """The paths of wrong or missing values; in `recipe` they have their default or a placeholder."""

    def is_sound(self, path: KeyPath) -> bool:
        """Whether nothing is wrong with a value, or above or below it."""
        return not any(bad[: len(path)] == path or path[: len(bad)] == bad for bad in self.bad)


def validate(layer: Layer) -> Recipe:
    """The recipe; raises RecipeError with every problem."""
    examined = examine(layer)
    if examined.problems or examined.recipe is None:
        raise RecipeError(examined.problems)
    return examined.recipe


def examine(layer: Layer) -> Examined:
    """Look at every setting and at what contradicts what; raises nothing."""
    values: Any = copy.deepcopy(dict(layer.values))
    found: list[Problem] = list(layer.problems)
    bad: set[KeyPath] = set()
    recipe: Recipe | None = None
    while recipe is None:
        try:
            recipe = Recipe.model_validate(values)
        except ValidationError as error:
            new = [pair for pair in _complaints(error, values, layer) if pair[0] not in bad]
            if not new:
                break
            found += [problem for _, problem in new]
            bad |= {path for path, _ in new}
            _leave_out(values, [path for path, _ in new])
    examined = Examined(recipe=recipe, layer=layer, problems=tuple(found), bad=frozenset(bad))
    return _with_findings(examined, check(recipe)) if recipe is not None else examined


def _complaints(error: ValidationError, values: Any, layer: Layer) -> list[tuple[KeyPath, Problem]]:
    def describe(path: KeyPath) -> tuple[str, str | None]:
        return display_path(path, values), _origin(layer, path)

    return list(complaints(error, values, Recipe, describe=describe))


def _origin(layer: Layer, path: KeyPath) -> str | None:
    """Who is to be named for a wrong or missing value."""
    origin = layer.origin_of(path)
    is_beside = path not in layer.origins and origin is not None and origin.startswith("--")
    return None if is_beside else origin  # a flag that set something beside it is not to blame


def _with_findings(examined: Examined, findings: Iterable[Finding]) -> Examined:
    sound = [f for f in findings if all(map(examined.is_sound, (f.path, *f.involved)))]
    layer = examined.layer
    problems = [
        Problem(path=display_path(f.path, layer.values), message=f.message, origin=_origin(layer, f.path))
        for f in sound
    ]
    return Examined(recipe=examined.recipe, layer=layer, problems=(*examined.problems, *problems), bad=examined.bad)


def _leave_out(values: dict[str, Any], paths: Iterable[KeyPath]) -> None:
    """Remove wrong values, or the whole list they are in; put placeholders where a recipe cannot do without."""
    for path in paths:
        *outer, key = _removable(path)
        holder: Any = values
        for part in outer:
            holder = holder.get(part, {}) if isinstance(holder, dict) else holder[part]
        if (placeholder := _placeholder(path)) is not None:
            holder[key] = placeholder
        elif isinstance(holder, dict):
            holder.pop(key, None)


def _removable(path: KeyPath) -> KeyPath:
    """The path, cut before a position in a list; those in lists of named entries are kept, so that names stay right."""
    root = list_of(path)
    start = len(root) + 1 if root else 0
    return next((path[:place] for place in range(start, len(path)) if isinstance(path[place], int)), path)


def _placeholder(path: KeyPath) -> object:
    if (root := list_of(path)) is not None:
        depth = len(path) - len(root)
        return {1: {"use": PLACEHOLDER}, 2: PLACEHOLDER if path[-1] == "use" else None}.get(depth)
    return copy.deepcopy(_PLACEHOLDERS.get(path))

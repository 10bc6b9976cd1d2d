"""Which dataset columns a registered reward takes. Its target is imported and built for that, nothing is scored."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from grpo_core.errors import GrpoError, RecipeError
from grpo_core.plugins.catalog import Entry
from grpo_core.plugins.targets import build_target
from grpo_core.recipe.components import plan_entry
from grpo_core.reward.binding import signature_of
from grpo_core.types import BuildContext
from grpo_core.types.reserved import RESERVED_NAMES

__all__ = ["Needs", "needs_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Columns by parameter name; `columns:` in a recipe gives a parameter another one."""

    required: tuple[str, ...] = ()
    """Without these it cannot be used."""
    optional: tuple[str, ...] = ()
    """Those it also reads."""
    takes_rest: bool = False
    """Whether it gets every other column too."""
    unknown: str | None = None
    """Why this cannot be said: something is not installed, or it has options without a default."""


def needs_of(entry: Entry) -> Needs:
    """The columns of a reward with its default options."""
    try:
        planned = plan_entry(entry, {})
        function = build_target(planned.target, planned.options_model, planned.options, BuildContext())
        parameters = signature_of(function, entry.spec.name).parameters
    except RecipeError as error:
        return Needs(unknown="; ".join(map(str, error.problems)))
    except GrpoError as error:
        return Needs(unknown=error.message)
    return _needs(parameters)


def _needs(parameters: Mapping[str, inspect.Parameter]) -> Needs:
    named = [each for each in parameters.values() if each.kind is not each.VAR_KEYWORD]
    columns = [each for each in named if each.name not in RESERVED_NAMES]
    return Needs(
        required=_names(each for each in columns if each.default is each.empty),
        optional=_names(each for each in columns if each.default is not each.empty),
        takes_rest=len(named) < len(parameters),
    )


def _names(parameters: Iterable[inspect.Parameter]) -> tuple[str, ...]:
    return tuple(each.name for each in parameters)

"""From the names in `run.report_to` to planned trackers. A part of `resolve`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from grpo_core.errors import RecipeError, UnknownComponent
from grpo_core.plugins.catalog import Catalog
from grpo_core.recipe.complaints import did_you_mean
from grpo_core.recipe.components import find_component, plan_entry
from grpo_core.recipe.plan import PlannedComponent
from grpo_core.recipe.schema import RunSettings

__all__ = ["plan_tracker", "stray_options"]

_WELL_KNOWN = ("tensorboard", "wandb", "trackio")
"""Names that people try without having installed the package that registers them."""


def plan_tracker(name: str, options: Mapping[str, Any], *, catalog: Catalog) -> PlannedComponent:
    """Plan a tracker; raises as `find_component` and `plan_entry` do, with paths below `run`."""
    try:
        entry = find_component("tracker", name, catalog=catalog).entry
    except UnknownComponent as error:
        install = f"pip install 'grpo-trackers[{name}]'. " if name in _WELL_KNOWN else ""
        raise UnknownComponent(error.message, hint=f"{install}{error.hint}") from None
    assert entry is not None  # only a registered name gets this far
    try:
        return plan_entry(entry, options)
    except RecipeError as error:
        place = f"tracker_options.{name}"
        raise RecipeError([replace(p, path=p.path.replace("options", place, 1)) for p in error.problems]) from None


def stray_options(run: RunSettings, catalog: Catalog) -> Iterator[tuple[str, str]]:
    """(path, message) of options that belong to no tracker, named in `report_to` or not."""
    known = [*run.report_to, *catalog.names("tracker")]
    for name in run.tracker_options:
        if name not in known:
            yield f"run.tracker_options.{name}", f"there is no tracker '{name}'; {did_you_mean(name, known)}"

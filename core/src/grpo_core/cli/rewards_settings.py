"""What the arguments of `grpoctl rewards` mean: the settings of one reward, its plan, its cases, and texts."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grpo_core.errors import RecipeError, UsageError
from grpo_core.regular_files import read_text, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grpo_core.plugins.catalog import Catalog
    from grpo_core.plugins.namespace import Namespace
    from grpo_core.recipe.plan import PlannedReward
    from grpo_core.recipe.schema import Recipe, RewardEntry

__all__ = ["planned_reward", "reward_settings", "shipped_file", "text_of"]


def reward_settings(name: str, set_: Sequence[str] | None, **flags: Any) -> Recipe:
    """The settings as `grpoctl train --rewards NAME` would read them; what is not needed is filled in."""
    from grpo_core.cli.planning import gather
    from grpo_core.recipe.validate import validate

    recipe = validate(gather(None, {"model": "none", "dataset": "none", **flags, "rewards": name, "set_": set_}))
    if len(recipe.rewards) != 1:
        raise UsageError(f"'{name}' names {len(recipe.rewards)} rewards", hint="Look at one at a time.")
    return recipe


def planned_reward(
    entry: RewardEntry,
    catalog: Catalog,
    options: Mapping[str, Any] | None = None,
    *,
    namespaces: Mapping[str, Namespace] | None = None,
) -> PlannedReward:
    """Plan a reward, with further options over its own; problems have the path that `--set` writes. `namespaces` as
    `Layer.dotted_namespaces` gives them."""
    from grpo_core.recipe.layers import reward_name
    from grpo_core.recipe.overrides import dotted
    from grpo_core.recipe.resolve import plan_reward

    address = dotted(("rewards", reward_name({"use": entry.use, "name": entry.name}) or "?"))
    seen = catalog.within((namespaces or {}).get(f"{address}.use"))
    try:
        return plan_reward(entry.model_copy(update={"options": {**entry.options, **(options or {})}}), catalog=seen)
    except RecipeError as error:
        raise RecipeError([replace(each, path=f"{address}.{each.path}") for each in error.problems]) from None


def shipped_file(use: str, catalog: Catalog) -> Path:
    """The cases that a reward ships; its options need not be complete for that. Raises `UsageError` for none."""
    from grpo_core.recipe.components import find_component
    from grpo_core.trial.cases import shipped_cases

    found = find_component("reward", use, catalog=catalog)
    target, name = found.reference.value, found.reference.short_name
    if found.entry is not None:
        target, name = found.entry.spec.target, found.entry.spec.name  # type: ignore[union-attr]
    file = shipped_cases(target, name)
    if file is None:
        raise UsageError(
            f"'{use}' ships no cases",
            hint=f"Name a file with --cases, or write cases/{name}.jsonl beside its file or in its package.",
        )
    return file


def text_of(text: str, flag: str) -> str:
    """The text that `TEXT`, `@FILE` or `-` stands for."""
    if text == "-":
        return sys.stdin.read()
    if not text.startswith("@"):
        return text
    try:
        return read_text(os.path.expanduser(text[1:]))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(
            f"{flag} {shown(text)}: the file cannot be read: {reason}",
            hint=f"'@' means a file; a text that begins with one is given by a file too, or by {flag} - (stdin).",
        ) from error

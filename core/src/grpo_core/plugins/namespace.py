"""Whose components a bare name means, where several plugins register it: those that its author could know of.

A recipe that a distribution ships was written beside that distribution, what it requires, and core. A plugin that is
installed later must not make its names ambiguous. Reads metadata; imports none of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from grpo_core.plugins.discover import CORE

__all__ = ["CORE_NAMESPACE", "Namespace", "namespace_of"]


@dataclass(frozen=True, slots=True)
class Namespace:
    """Distributions, nearest first: of those that register a name, the nearest are meant."""

    tiers: tuple[frozenset[str], ...]
    """Canonical names of distributions that are equally near."""


CORE_NAMESPACE = Namespace((frozenset({CORE}),))
"""Where core's own defaults were written."""


def namespace_of(owner: str, required: Iterable[str] = ()) -> Namespace:
    """The namespace of a recipe that `owner`, a distribution or `--plugin FILE`, ships: itself; what it requires, by
    its metadata (its extras too) or by `required` (`grpo-acme>=1`, the recipe's `plugins.require`), and what that
    requires in turn; then core."""
    itself = str(canonicalize_name(owner))
    direct = [*_requirements(itself, None), *_parsed(required)]
    return Namespace((frozenset({itself}), frozenset(_closure(direct)) - {itself, CORE}, frozenset({CORE})))


def _closure(direct: Iterable[Requirement]) -> set[str]:
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = list(direct)
    while waiting:
        requirement = waiting.pop()
        name, extras = str(canonicalize_name(requirement.name)), frozenset(requirement.extras)
        if (name, extras) not in seen:
            seen.add((name, extras))
            waiting += _requirements(name, extras)
    return {name for name, _ in seen}


def _requirements(distribution: str, extras: Collection[str] | None) -> Iterator[Requirement]:
    """What an installed distribution requires with these extras (None: with all) on this machine."""
    try:
        lines = requires(distribution) or []
    except PackageNotFoundError:  # a `--plugin FILE`, or an extra that is not installed
        return
    for requirement in _parsed(lines):
        marker = requirement.marker
        is_extra = extras is None and "extra" in str(marker)
        if marker is None or is_extra or any(marker.evaluate({"extra": extra}) for extra in ("", *(extras or ()))):
            yield requirement


def _parsed(lines: Iterable[str]) -> Iterator[Requirement]:
    for line in lines:
        try:
            yield Requirement(line)
        except InvalidRequirement:
            continue  # said where plugins are loaded, or pip's business

"""Which installed distributions are plugins. Reads metadata; imports none of them.

A distribution is a plugin when it has an entry point in the group `grpo_core.v1`; one whose group is spelled nearly so
is told. It is known by its own name: the
names of entry points are ignored, since authors copy them from examples. `airlock` tries what is found here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distribution, distributions

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from grpo_core import __version__
from grpo_core.plugins.hookspecs import ENTRY_POINT_GROUP
from grpo_core.plugins.verdicts import Candidate, Quarantined

__all__ = ["CORE", "discover", "unknown_names"]

CORE = "grpo-core"
_GROUP = re.compile(r"grpo_core\.v\d+")
_GROUP_HEADER = re.compile(r"^\s*\[\s*(\S+?)\s*\]", re.MULTILINE)


def discover(*, disabled: Collection[str] = ()) -> tuple[list[Candidate], list[Quarantined]]:
    """All plugins on `sys.path`, sorted by name: those to try, and those ruled out by their metadata or switched off.

    Where a distribution is found twice, the one that Python would import counts.
    """
    candidates: list[Candidate] = []
    ruled_out: list[Quarantined] = []
    off = {canonicalize_name(name) for name in disabled}
    for found in _plugin_distributions():
        verdict = _examine(found, off)
        if isinstance(verdict, Candidate):
            candidates.append(verdict)
        else:
            ruled_out.append(verdict)
    return candidates, ruled_out


def unknown_names(names: Collection[str], known: Collection[str]) -> list[str]:
    """One warning for each name to switch off that is no plugin, with its nearest match."""
    known_names = sorted({*map(canonicalize_name, known)})
    warnings = []
    for name in names:
        if canonicalize_name(name) not in known_names:
            near = get_close_matches(canonicalize_name(name), known_names, n=1)
            advice = f"did you mean '{near[0]}'?" if near else f"installed plugins: {', '.join(known_names)}"
            warnings.append(f"no plugin '{name}' to switch off; {advice}")
    return warnings


def _plugin_distributions() -> Iterator[Distribution]:
    named: dict[str, Distribution] = {}
    for found in filter(_has_group, distributions()):
        name = _name(found)
        if name is None:
            yield found
        else:
            named.setdefault(name, found)
    for name in sorted(named):
        try:
            first = distribution(name)  # what hides it on sys.path may be no plugin
        except PackageNotFoundError:  # its folder is called differently
            first = named[name]
        if _has_group(first):
            yield first


def _has_group(found: Distribution) -> bool:
    groups = _GROUP_HEADER.findall(found.read_text("entry_points.txt") or "")
    return any(_GROUP.fullmatch(group) or _is_near(group) for group in groups)


def _is_near(group: str) -> bool:
    """Whether a group is probably meant to be ours: `grpo_core`, `grpo-core.v1`, `grpocore_v1`."""
    letters = re.sub(r"[^a-z0-9]", "", group.lower())
    return letters.startswith("grpo") and bool(get_close_matches(letters, ["grpocore", "grpocorev1"], n=1, cutoff=0.8))


def _name(found: Distribution) -> str | None:
    if not (found.read_text("METADATA") or found.read_text("PKG-INFO")):
        return None
    name = found.metadata["Name"]
    return str(canonicalize_name(name)) if name else None


def _examine(found: Distribution, off: Collection[str]) -> Candidate | Quarantined:
    name = _name(found)
    try:
        near = sorted({point.group for point in found.entry_points if _is_near(point.group)})
        points = [point for point in found.entry_points if _GROUP.fullmatch(point.group)]
    except Exception:  # noqa: BLE001  a malformed file must not take the tool down
        near, points = [], []
    if name is not None and near and not points:
        return _misspelt(found, name, near, off)
    if name is None or not points:
        return _unreadable(found, name, points)
    verdict = _standing(found, name, points, off)
    return verdict or Candidate(
        distribution=name,
        version=found.version,
        modules=tuple(sorted({point.value for point in points if point.group == ENTRY_POINT_GROUP})),
    )


def _standing(found: Distribution, name: str, points: list[EntryPoint], off: Collection[str]) -> Quarantined | None:
    groups = sorted({point.group for point in points})
    required = _core_requirement(found)
    if name in off:
        return Quarantined(distribution=name, version=found.version, stage="blocked", reason="switched off")
    if ENTRY_POINT_GROUP not in groups:
        return Quarantined(
            distribution=name,
            version=found.version,
            stage="api",
            reason=f"it is written for the hooks {', '.join(groups)}; grpo-core {__version__} has {ENTRY_POINT_GROUP}",
            hint=f"Install a version of {name} for {ENTRY_POINT_GROUP}, or another grpo-core.",
        )
    if required is not None and not required.specifier.contains(__version__, prereleases=True):
        return Quarantined(
            distribution=name,
            version=found.version,
            stage="version",
            reason=f"it needs {required.name}{required.specifier}; this is grpo-core {__version__}",
            hint=f"pip install '{required.name}{required.specifier}', or another version of {name}.",
        )
    return None


def _misspelt(found: Distribution, name: str, groups: list[str], off: Collection[str]) -> Quarantined:
    if name in off:
        return Quarantined(distribution=name, version=found.version, stage="blocked", reason="switched off")
    return Quarantined(
        distribution=name,
        version=found.version,
        stage="api",
        reason=f"its entry point is in the group '{groups[0]}'; plugins are found in '{ENTRY_POINT_GROUP}' only",
        hint=f'Write [project.entry-points."{ENTRY_POINT_GROUP}"] in its pyproject.toml, and install it again.',
    )


def _core_requirement(found: Distribution) -> Requirement | None:
    for line in found.requires or []:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue  # pip's business: only the line about grpo-core is ours
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if canonicalize_name(requirement.name) == CORE and applies:
            return requirement
    return None


def _unreadable(found: Distribution, name: str | None, points: list[EntryPoint]) -> Quarantined:
    module = points[0].value.partition(".")[0] if points else "unknown"
    return Quarantined(
        distribution=name or module,
        version=found.version if name else "?",
        stage="metadata",
        reason="its installed metadata cannot be read",
        hint="Install it again: pip install --force-reinstall --no-deps, and its name.",
    )

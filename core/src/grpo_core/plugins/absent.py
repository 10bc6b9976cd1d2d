"""The errors of a target that leads nowhere: what is missing, and what is near."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

from grpo_core.errors import BrokenReference

__all__ = ["no_attribute", "no_file", "no_module"]


def no_file(path: Path, target: str | None) -> BrokenReference:
    """There is no such Python file; `target` is what needs it."""
    suffix = f", needed by '{target}'" if target else ""
    if path.is_dir():
        return BrokenReference(f"'{path}' is a folder, not a Python file{suffix}")
    if not path.parent.is_dir():
        return BrokenReference(f"there is no folder '{path.parent}'{suffix}")
    names = [file.name for file in path.parent.glob("*.py")]
    return BrokenReference(f"there is no file '{path}'{suffix}", hint=_did_you_mean(path.name, names))


def no_module(missing: str, target: str | None, paths: Iterable[str] | None = None) -> BrokenReference:
    """There is no such module; `paths` are the folders of the package it would be in, where that is not imported."""
    parent, _, name = missing.rpartition(".")
    if paths is None and parent in sys.modules:
        paths = getattr(sys.modules[parent], "__path__", ())
    siblings = [module.name for module in pkgutil.iter_modules(paths)]
    suffix = f", needed by '{target}'" if target and not target.startswith(f"{missing}:") else ""
    hint = _did_you_mean(name, siblings, prefix=f"{parent}." if parent else "")
    return BrokenReference(
        f"there is no module '{missing}'{suffix}",
        hint=hint or "Install the package that has it, or name a file: ./file.py:attr.",
    )


def no_attribute(target: str, owner: Sequence[str], part: str, known: Iterable[str]) -> BrokenReference:
    """The object `owner` of a target's file or module, or itself where that is empty, has no `part`; `known` are the
    names that it has."""
    place = target.rpartition(":")[0]
    kind = "file" if place.endswith(".py") else "module"
    shown = f"'{place}:{'.'.join(owner)}'" if owner else f"{kind} '{place}'"
    public = [name for name in known if not name.startswith("_")]
    return BrokenReference(f"{shown} has no '{part}', needed by '{target}'", hint=_did_you_mean(part, public))


def _did_you_mean(name: str, known: Iterable[str], *, prefix: str = "") -> str | None:
    near = get_close_matches(name, list(known), n=3)
    return f"Did you mean {' or '.join(repr(prefix + match) for match in near)}?" if near else None

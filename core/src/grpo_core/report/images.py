"""Thumbnails of the images that prompts have, as far as they fit into the page, each once for all runs.

Those of probes come first, then those of completions, evenly spread. What a run's folder holds is checked: a name is
a digest and no path, and a file is a small JPEG.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grpo_core.regular_files import read_bytes
from grpo_core.report.thinning import evenly_spread

__all__ = ["Pictures", "is_digest", "read_pictures"]

_DIGEST = re.compile(r"[0-9a-f]{64}")
_JPEG = b"\xff\xd8\xff"
_MOST_BYTES = 60_000
"""Of one thumbnail; a run writes about 20 kB at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """The images of one run that are in the page."""

    texts: dict[str, str]
    """Digest -> base64 of a JPEG."""
    text: str
    """A sentence about what is left out; empty: nothing."""


def is_digest(name: object) -> bool:
    """Whether a record names an image as a run does."""
    return isinstance(name, str) and _DIGEST.fullmatch(name) is not None


def read_pictures(folder: Path, probes: Iterable[str], completions: Iterable[str], *, budget_bytes: int) -> Pictures:
    """Read the thumbnails in `folder` that are named, of about `budget_bytes` as they stand in the page."""
    first = [name for name in dict.fromkeys(probes) if name]
    rest = [name for name in dict.fromkeys(completions) if name and name not in set(first)]
    there = {name: size for name in (*first, *rest) if (size := _size(folder / f"{name}.jpg"))}
    texts: dict[str, str] = {}
    left = budget_bytes
    for name in _in_order(
        [name for name in first if name in there], [name for name in rest if name in there], there, left
    ):
        encoded = _encoded(folder / f"{name}.jpg")
        if encoded is not None and len(encoded) <= left:
            texts[name] = encoded
            left -= len(encoded)
    wanted = len(first) + len(rest)
    return Pictures(texts=texts, text=_said(len(texts), wanted, wanted - len(there)))


def _in_order(first: list[str], rest: list[str], sizes: dict[str, int], budget_bytes: int) -> Sequence[str]:
    """Those of probes, then as many of the rest, evenly spread, as fit on average."""
    left = budget_bytes - sum(sizes[name] for name in first)
    needed = sum(sizes[name] for name in rest)
    if needed <= left or not rest:
        return [*first, *rest]
    places = evenly_spread(range(len(rest)), max(left * len(rest) // needed, 2))
    return [*first, *(rest[place] for place in places)]


def _size(path: Path) -> int:
    """In the page, as base64; 0: there is no such thumbnail."""
    try:
        size = path.stat().st_size
    except OSError:
        return 0
    return 4 * ((size + 2) // 3) if 0 < size <= _MOST_BYTES else 0


def _encoded(path: Path) -> str | None:
    try:
        data = read_bytes(path, most=_MOST_BYTES)
    except OSError:
        return None
    return base64.b64encode(data).decode() if data.startswith(_JPEG) else None


def _said(kept: int, wanted: int, missing: int) -> str:
    if kept == wanted:
        return ""
    reasons = [f"{missing:,} without a thumbnail in the run's images folder"] if missing else []
    reasons += ["the rest is left out to keep this file small"] if wanted - kept > missing else []
    return f"{kept:,} of {wanted:,} images are here: {'; '.join(reasons)}."

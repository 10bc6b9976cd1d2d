"""Which split of a dataset is meant: the one that was named, else the obvious one, else an error with the choice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from grpo_core.errors import DataError

__all__ = ["file_split", "take_split"]

_SPLIT_WORD = re.compile(
    r"(train|training|test|testing|validation|valid|val|dev|evaluation|eval)(?![a-z])", re.IGNORECASE
)
_SAME = {"training": "train", "testing": "test", "valid": "validation", "val": "validation", "dev": "validation"}
_SAME |= {"eval": "evaluation"}


def file_split(file: Path) -> str | None:
    """The split that the name of a file in a folder, or of a folder around it, begins with; None: none."""
    for part in reversed(file.parts):
        if match := _SPLIT_WORD.match(part):
            word = match.group(1).lower()
            return _SAME.get(word, word)
    return None


def take_split(available: Sequence[str], asked: str | None, *, purpose: str, where: str) -> str:
    """The split to read: `asked`, or the only one, or `train` when `purpose` is `train`."""
    names = ", ".join(name or "(files without one)" for name in available)
    if asked is not None and asked not in available and any(sign in asked for sign in "[+"):
        raise DataError(
            f"{where}: '{asked}' is no split; parts and sums of splits are not read",
            hint="`#1000` after the reference draws 1,000 rows; several splits can be datasets of a mix.",
        )
    if asked is not None:
        wanted = asked if asked in available else _SAME.get(asked, asked)
        if wanted not in available:
            raise DataError(f"{where}: there is no split {asked!r}; it has {names}")
        return wanted
    if len(available) == 1:
        return available[0]
    if purpose == "train" and "train" in available:
        return "train"
    raise DataError(f"{where}: has several splits: {names}", hint="Choose one, for instance ?split=train.")

"""A row as it was read: its columns, and where a person finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Row"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a file, a hub dataset or a plugin's source.

    Example: `Row(index=2, place="train.jsonl line 3", columns={"query": "6*7?", "solution": "42"})`
    """

    index: int
    """Its position in the whole dataset, from 0: part of the sample's id, whatever subset is taken."""
    place: str
    """Where it is, for messages."""
    columns: Mapping[str, object]
    """Column name -> value, as read."""
    folder: Path | None = None
    """Where relative image paths start; None: the row came from no file."""

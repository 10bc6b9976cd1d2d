"""What a component that takes options is told about the run it is built for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["BuildContext"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildContext:
    """Given to every factory `make(options, context)`."""

    seed: int = 0
    """The run's seed."""
    run_dir: Path | None = None
    """The run's folder; None outside a run (`datasets preview`, for instance)."""
    rank: int = 0
    """Of this process, from 0."""
    world_size: int = 1
    """How many processes train together."""
    local_rank: int = 0
    """Of this process among those on its machine, from 0: its GPU."""
    local_world_size: int = 1
    """How many of them are on this machine and share its cores."""

"""Whether a new run may begin in a folder: an empty one, or that of a run that failed before it had made anything.

Imports nothing heavy: the command line asks before torch is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from grpo_core.errors import CheckpointError
from grpo_core.loop.lock import LOCK_FILE
from grpo_core.recipe.folder import PLAN_FILE
from grpo_core.recipe.plan import LaunchPlan

__all__ = ["holds_unstarted_run", "refusal"]

_EMPTY_FILES = {"metrics.jsonl"}
_FILES = {PLAN_FILE, "plan.partial", "metrics.partial", LOCK_FILE}
_FOLDERS = {"checkpoints", "completions", "probes"}
_BEFORE_STEP_1 = Path("probes", "step-000000.jsonl")
"""Probe answers of a model that was not trained; the next run gives them again."""
_LEFT_TO_OTHERS = {"trackers", "weights"}
"""What trackers and engines write when they start."""


def refusal(folder: Path) -> str | None:
    """Why no new run may begin in a folder, and what to do instead; None: one may."""
    if not folder.is_dir() or not _entries(folder) or holds_unstarted_run(folder):
        return None
    if (folder / PLAN_FILE).exists():
        return f"is not empty; `grpoctl resume {folder}` goes on with a run; for a new one choose another --output"
    return "is not empty, and what is in it is no run's; choose another --output"


def holds_unstarted_run(folder: Path) -> bool:
    """Whether a folder has a run that made no step, evaluation, checkpoint or model, and nothing of anybody else."""
    return not list(_obstacles(folder)) and _has_plan(folder)


def _entries(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {LOCK_FILE}


def _obstacles(folder: Path) -> Iterator[Path]:
    """What a run has made, or somebody else."""
    for path in folder.iterdir():
        if path.is_dir() and path.name in _FOLDERS:
            yield from (each for each in path.rglob("*") if not each.is_dir() and each != folder / _BEFORE_STEP_1)
        elif path.is_dir():
            yield from () if path.name in _LEFT_TO_OTHERS else (path,)
        elif path.name not in _FILES and not (path.name in _EMPTY_FILES and not path.stat().st_size):
            yield path


def _has_plan(folder: Path) -> bool:
    """A file of that name may be anybody's."""
    try:
        LaunchPlan.read(folder)
    except CheckpointError:
        return False
    return True

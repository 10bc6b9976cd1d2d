"""The names in a run's folder: which of its entries are of which step. What stands in them is the loop's.

RUN/checkpoints/step-000100   RUN/completions/step-000012.jsonl   RUN/probes/step-000012.jsonl
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = [
    "PLAN_FILE",
    "STATE_FILE",
    "checkpoints_of",
    "is_checkpoint",
    "step_files_in",
    "step_named",
    "step_of",
]

PLAN_FILE = "plan.json"
STATE_FILE = "state.json"
_CHECKPOINTS = "checkpoints"
_STEP = re.compile(r"step-([0-9]{6,})")


def step_named(name: str, suffix: str = "") -> int | None:
    """The step that a name `step-000012` (with `suffix`) says; None: it is no such name."""
    found = _STEP.fullmatch(name.removesuffix(suffix)) if name.endswith(suffix) else None
    step = None if found is None else int(found[1])
    return step if step is not None and name == f"step-{step:06d}{suffix}" else None


def step_files_in(folder: Path, suffix: str = ".jsonl") -> dict[int, Path]:
    """Step -> its entry in a folder, in order; none where there is no such folder."""
    named = ((step_named(path.name, suffix), path) for path in folder.glob(f"step-*{suffix}"))
    return dict(sorted((step, path) for step, path in named if step is not None))


def checkpoints_of(run_dir: Path) -> list[Path]:
    """Complete checkpoints, oldest first. A folder of another name, or a file, is none."""
    return [path for path in step_files_in(run_dir / _CHECKPOINTS, "").values() if path.is_dir()]


def is_checkpoint(path: Path) -> bool:
    """Whether `path` is a checkpoint, by what is in it, or by its name and place where that was lost."""
    if not path.is_dir():  # which a circle of links is not: it cannot be resolved
        return False
    whole = path.resolve()
    return (path / STATE_FILE).is_file() or (whole.parent.name == _CHECKPOINTS and step_named(whole.name) is not None)


def step_of(checkpoint: Path) -> int:
    """The step that the name of one of `checkpoints_of` says."""
    step = step_named(checkpoint.name)
    assert step is not None
    return step

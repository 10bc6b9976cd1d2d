"""A run's folder, opened for reading: what is there, and in `notes` what is not or cannot be read.

An unreadable part costs that part; only a folder without a single step is an error.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grpo_core.errors import CheckpointError, UsageError
from grpo_core.recipe.folder import PLAN_FILE, is_checkpoint, step_files_in
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.report.lines import Row, read_lines

__all__ = ["RunFolder", "StepFile", "open_run", "open_runs"]

METRICS_FILE = "metrics.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFile:
    """A file about one step."""

    step: int
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """One run."""

    path: Path
    """Its folder."""
    name: str
    """Short, and unique among the runs of a report."""
    plan: LaunchPlan | None
    """None: missing or unreadable."""
    rows: tuple[Row, ...]
    """Of metrics.jsonl by step, each step once; never empty."""
    completions: tuple[StepFile, ...]
    """By step."""
    probes: tuple[StepFile, ...]
    """By step."""
    finished: bool
    """Whether the final model was written."""
    notes: list[str]
    """What could not be read; readers of the other files add theirs."""

    @property
    def steps(self) -> int:
        """Steps done."""
        return step_of(self.rows[-1])


def step_of(row: Row) -> int:
    """The step of a row that `open_run` let through."""
    step = row["step"]
    assert isinstance(step, int)
    return step


def open_runs(paths: Sequence[Path]) -> tuple[RunFolder, ...]:
    """Open several runs, each once; raises as `open_run`."""
    unique = list({os.path.realpath(path): path for path in paths}.values())
    return tuple(open_run(path, name) for path, name in zip(unique, short_names(unique), strict=True))


def open_run(path: Path, name: str) -> RunFolder:
    """Open a run; raises `UsageError` when `path` is none, or has no metrics yet."""
    check_folder(path)
    notes: list[str] = []
    rows = _read_rows(path / METRICS_FILE, notes)
    if not rows:
        reason = "; ".join(notes) or "no step is finished"
        raise UsageError(f"{path} has no metrics yet: {reason}", hint="Make the report once a step is done.")
    return RunFolder(
        path=path,
        name=name,
        plan=_read_plan(path, notes),
        rows=rows,
        completions=_step_files(path / "completions"),
        probes=_step_files(path / "probes"),
        finished=(path / "final").is_dir(),
        notes=notes,
    )


def check_folder(path: Path) -> None:
    """Raise `UsageError` unless `path` looks like a run's folder."""
    hint = "Give the folder that `grpoctl train` printed."
    if not os.path.exists(path):
        raise UsageError(f"there is no folder {path}", hint=hint)
    if not path.is_dir():
        raise UsageError(f"{path} is a file, not a run's folder", hint=f"Give its folder: {path.parent}")
    if is_checkpoint(path):
        raise UsageError(f"{path} is a checkpoint", hint=f"Give the folder of its run: {path.resolve().parents[1]}")
    if not (path / PLAN_FILE).exists() and not (path / METRICS_FILE).exists():
        raise UsageError(f"{path} is no run's folder: it has neither {PLAN_FILE} nor {METRICS_FILE}", hint=hint)


def short_names(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, or as many of the last parts as tell them apart."""
    parts = [Path(os.path.realpath(path)).parts for path in paths]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]


def _read_rows(path: Path, notes: list[str]) -> tuple[Row, ...]:
    if not path.exists():
        return ()
    by_step: dict[int, Row] = {}
    for row in read_lines(path, notes):
        step = row.get("step")
        if not isinstance(step, int) or isinstance(step, bool):
            notes.append(f"{path.name}: a line without a step was left out")
            continue
        if step in by_step:
            notes.append(f"{path.name}: step {step} is there twice; the later line counts")
        by_step[step] = row
    return tuple(by_step[step] for step in sorted(by_step))


def _read_plan(path: Path, notes: list[str]) -> LaunchPlan | None:
    try:
        return LaunchPlan.read(path)
    except CheckpointError as error:
        notes.append(f"{error.message}, so the settings are not shown")
    return None


def _step_files(folder: Path) -> tuple[StepFile, ...]:
    return tuple(StepFile(step=step, path=path) for step, path in step_files_in(folder).items())

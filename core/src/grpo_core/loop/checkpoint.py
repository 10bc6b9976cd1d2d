"""Checkpoints of a run: written aside and renamed, so that a kill at any instant leaves the last one whole.

RUN/checkpoints/step-000100/state.json      what the loop must know
RUN/checkpoints/step-000100/trainer/        what the trainer backend wrote
RUN/final/                                  the model in Hugging Face layout
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from grpo_core.errors import CheckpointError
from grpo_core.protocols import TrainerBackend
from grpo_core.ranks.ranks import ALONE, Ranks

__all__ = ["LoopState", "checkpoints_of", "export_final", "newest_checkpoint", "read_state", "save_checkpoint"]

_PREFIX = "step-"
_ASIDE = ".partial-"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopState:
    """What the loop itself remembers between steps; all else is a function of seed and step."""

    step: int
    """Steps done."""
    version: int
    """Optimiser updates done."""
    zero_reward_steps: int
    """Steps in a row with no reward at all."""
    fingerprint: str
    """Of the data it was trained on."""
    data: dict[str, Any] = field(default_factory=dict)
    """The positions of streamed datasets."""


def checkpoints_of(run_dir: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted((run_dir / "checkpoints").glob(f"{_PREFIX}*"))


def newest_checkpoint(run_dir: Path) -> Path | None:
    """The checkpoint a resume starts from."""
    found = checkpoints_of(run_dir)
    return found[-1] if found else None


def save_checkpoint(
    run_dir: Path, state: LoopState, trainer: TrainerBackend, *, keep: int | None, ranks: Ranks = ALONE
) -> Path:
    """Write a checkpoint of `state` and the trainer; then remove the oldest ones beyond `keep`."""

    def write(folder: Path) -> None:
        trainer.save(folder / "trainer")
        if ranks.is_first:
            (folder / "state.json").write_text(json.dumps(asdict(state), indent=2) + "\n", encoding="utf-8")

    target = run_dir / "checkpoints" / f"{_PREFIX}{state.step:06d}"
    with ranks.stage("checkpoint"):
        _write_aside(target, write, ranks, inner="trainer")
        for old in checkpoints_of(run_dir)[: -keep if keep else 0] if ranks.is_first else ():
            shutil.rmtree(old)
    return target


def export_final(run_dir: Path, trainer: TrainerBackend, *, ranks: Ranks = ALONE) -> Path:
    """Write the model in Hugging Face layout to `final/`."""
    target = run_dir / "final"
    with ranks.stage("export"):
        _write_aside(target, trainer.export, ranks)
    return target


def read_state(checkpoint: Path) -> LoopState:
    """The loop's part of a checkpoint."""
    path = checkpoint / "state.json"
    try:
        return LoopState(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"{path} is not the state of a checkpoint: {error}", hint="remove that folder and resume from an older one"
        ) from error


def _write_aside(target: Path, write: Callable[[Path], None], ranks: Ranks, *, inner: str = "") -> None:
    """Let `write` fill a folder beside `target` (and the folder `inner` in it), on all ranks together; then rank 0
    brings it to the disk and renames it into place."""
    aside = target.with_name(f"{_ASIDE}{target.name}")
    try:
        if ranks.is_first:
            shutil.rmtree(aside, ignore_errors=True)
            (aside / inner).mkdir(parents=True)
        ranks.gather(None)
        write(aside)
        ranks.gather(None)
        if not ranks.is_first:
            return
        _sync_tree(aside)
        if target.exists():
            shutil.rmtree(target)
        aside.rename(target)
        _sync(target.parent)
    except OSError as error:
        raise CheckpointError(
            f"{target} cannot be written: {error.strerror or error}",
            hint="free disk space or make the folder writable, then `grpoctl resume` this run",
        ) from error


def _sync_tree(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Checkpoints of a run: written aside and renamed, so that a kill at any instant leaves the last one whole.

RUN/checkpoints/step-000100/state.json      what the loop must know
RUN/checkpoints/step-000100/plan.json       a copy of the run's, for when that is lost
RUN/checkpoints/step-000100/trainer/        what the trainer backend wrote
RUN/checkpoints/step-000100/SHA256SUMS      of all of these; `restore` reads them back
RUN/final/  RUN/best/                       the model in Hugging Face layout
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field
from safetensors import SafetensorError

from grpo_core.errors import CheckpointError
from grpo_core.loop.checksums import write_sums
from grpo_core.protocols import TrainerBackend
from grpo_core.ranks.ranks import ALONE, Ranks
from grpo_core.recipe.folder import STATE_FILE, checkpoints_of, step_of
from grpo_core.recipe.plan import LaunchPlan

__all__ = [
    "LoopState",
    "export_model",
    "forget_checkpoints",
    "good_checkpoint",
    "newest_checkpoint",
    "save_checkpoint",
]

logger = logging.getLogger("grpo_core")

_PREFIX = "step-"
_ASIDE = ".partial-"

Steps = Annotated[int, Field(ge=0, le=10**9)]
"""Steps or updates."""
Some = Annotated[int, Field(ge=0, le=2**16)]
"""Threads or processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopState:
    """What the loop itself remembers between steps; all else is a function of seed and step."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    step: Steps
    """Steps done."""
    version: Steps
    """Optimiser updates done."""
    zero_reward_steps: Steps
    """Steps in a row with no reward at all."""
    fingerprint: str
    """Of the data it was trained on."""
    data: dict[str, Any] = field(default_factory=dict)
    """The positions of streamed datasets."""
    threads: Some = 0
    """With how many threads a process computes; 0: not known."""
    processes: Some = 0
    """How many processes train; 0: not known."""
    per_machine: Some = 0
    """How many of them on each machine; 0: not known."""


def newest_checkpoint(run_dir: Path) -> Path | None:
    """The checkpoint a resume starts from."""
    found = checkpoints_of(run_dir)
    return found[-1] if found else None


def save_checkpoint(
    run_dir: Path,
    state: LoopState,
    trainer: TrainerBackend,
    *,
    keep: int | None,
    kept_whatever: Callable[[int], bool] = lambda step: False,
    good_step: int = 0,
    plan: LaunchPlan | None = None,
    ranks: Ranks = ALONE,
) -> Path:
    """Write a checkpoint of `state` and the trainer, with a copy of `plan`; then remove the oldest ones beyond `keep`,
    except the newest of those up to `good_step`; those of steps that are `kept_whatever` do not count."""

    def write(folder: Path) -> None:
        trainer.save(folder / "trainer")
        if ranks.is_first:
            (folder / STATE_FILE).write_text(json.dumps(asdict(state), indent=2) + "\n", encoding="utf-8")
            if plan is not None:
                plan.write(folder)

    target = run_dir / "checkpoints" / f"{_PREFIX}{state.step:06d}"
    with ranks.stage("checkpoint"):
        _write_aside(target, write, ranks, inner="trainer", finish=write_sums)
    if keep and ranks.is_first:
        _remove_old(run_dir, keep, kept_whatever, good_step)
    return target


def good_checkpoint(run_dir: Path, good_step: int) -> Path | None:
    """The newest checkpoint up to `good_step`."""
    found = [path for path in checkpoints_of(run_dir) if step_of(path) <= good_step]
    return found[-1] if found else None


def forget_checkpoints(run_dir: Path, step: int) -> None:
    """Remove the checkpoints after `step`: a run that goes on from there will not have been what they say."""
    for later in checkpoints_of(run_dir):
        if step_of(later) > step:
            _remove(later)


def _remove_old(run_dir: Path, keep: int, kept_whatever: Callable[[int], bool], good_step: int) -> None:
    good = good_checkpoint(run_dir, good_step)
    for old in [each for each in checkpoints_of(run_dir) if not kept_whatever(step_of(each))][:-keep]:
        if old != good:
            try:
                _remove(old)
            except OSError as error:
                logger.warning("the old checkpoint %s cannot be removed: %s", old, error.strerror or error)


def _remove(checkpoint: Path) -> None:
    aside = checkpoint.with_name(f"{_ASIDE}{checkpoint.name}")  # a kill in the middle leaves no half checkpoint
    shutil.rmtree(aside, ignore_errors=True)
    checkpoint.rename(aside)
    shutil.rmtree(aside)


def export_model(target: Path, trainer: TrainerBackend, files: Mapping[str, str], *, ranks: Ranks = ALONE) -> Path:
    """Write the model in Hugging Face layout to `target`, with some more text files: name -> text."""

    def write(folder: Path) -> None:
        trainer.export(folder)
        for name, text in files.items() if ranks.is_first else ():
            (folder / name).write_text(text, encoding="utf-8")

    with ranks.stage("export"):
        _write_aside(target, write, ranks)
    return target


def _write_aside(
    target: Path,
    write: Callable[[Path], None],
    ranks: Ranks,
    *,
    inner: str = "",
    finish: Callable[[Path], None] = lambda folder: None,
) -> None:
    """Let `write` fill a folder beside `target` (and the folder `inner` in it), on all ranks together; then rank 0
    lets `finish` see what all of them wrote, brings it to the disk and renames it into place.

    Raises `CheckpointError` on every rank when one of them cannot write. What was written is freed whatever happens.
    """
    aside = target.with_name(f"{_ASIDE}{target.name}")

    def begin() -> None:
        shutil.rmtree(aside, ignore_errors=True)
        (aside / inner).mkdir(parents=True)

    def end() -> None:
        finish(aside)
        _sync_tree(aside)
        if target.exists():
            shutil.rmtree(target)
        aside.rename(target)
        _sync(target.parent)

    try:
        _together(ranks, target, begin if ranks.is_first else None)
        _together(ranks, target, lambda: write(aside))
        _together(ranks, target, end if ranks.is_first else None)
    except BaseException:
        if ranks.is_first:
            shutil.rmtree(aside, ignore_errors=True)
        raise


def _together(ranks: Ranks, target: Path, part: Callable[[], None] | None) -> None:
    """Do a part of writing `target` on every rank that has one; all of them hear whether it worked."""
    problem = None
    try:
        if part is not None:
            part()
    except OSError as error:
        problem = error.strerror or str(error)
    except (CheckpointError, SafetensorError) as error:
        problem = error.message if isinstance(error, CheckpointError) else str(error)
    found = [each for each in ranks.gather(problem) if each is not None]
    if found:
        raise CheckpointError(
            f"{target} cannot be written: {found[0]}", hint="free disk space, or make the folder writable"
        )


def _sync_tree(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

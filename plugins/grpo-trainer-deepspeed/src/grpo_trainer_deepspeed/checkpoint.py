"""A trainer's state as DeepSpeed writes it, every rank its own part, and what must agree before it is read again.

    engine/         DeepSpeed's files: weights, masters and AdamW's numbers, in parts
    trainer.json    format, number of processes, stage, precision, updates
    universal/      the parts put together, made when another number of processes wants to read them

Stage and precision must be what they were.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grpo_core.errors import CheckpointError

__all__ = ["Progress", "read", "read_progress", "write", "write_progress"]

FORMAT = "deepspeed-1"
PARTS = "engine"
CONVERTED = "universal"
PROGRESS_FILE = "trainer.json"
_HINT = "resume from another checkpoint of the same run and model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The part of the state that is not tensors."""

    updates: int
    """Optimiser updates done, those that were refused included."""
    world_size: int
    """Processes that wrote the parts."""
    stage: int
    """Of ZeRO."""
    precision: str
    """Of weights and activations."""
    format: str = FORMAT
    """Of these files."""


def write(engine: Any, directory: Path, agreed: Callable[[bool], bool], *, trained_only: bool) -> None:
    """Write this rank's part; `agreed` says whether something is so on all ranks. Raises `CheckpointError` on all of
    them when one cannot write."""
    if not agreed(directory.is_dir()):
        raise CheckpointError(
            f"{directory} is not there on every machine, and each process writes a part of the weights into it",
            hint="put the run's folder on a disk that all machines share: --output",
        )
    with _noting_failures(engine) as failures:
        engine.save_checkpoint(str(directory), tag=PARTS, save_latest=False, exclude_frozen_parameters=trained_only)
    if not agreed(not failures):
        reason = str(failures[0]) if failures else "another rank could not write its part"
        raise CheckpointError(
            f"{directory}: the trainer's state cannot be written: {reason}", hint="is the disk full, or read-only?"
        )


def read(engine: Any, directory: Path, *, trained_only: bool, converted: bool = False) -> None:
    """Read this rank's part, or its part of what `convert` made."""
    tag = CONVERTED if converted else PARTS
    path, before = directory / tag, engine._config.load_universal_checkpoint
    engine._config.load_universal_checkpoint = converted
    try:
        loaded, _ = engine.load_checkpoint(
            str(directory), tag=tag, load_module_strict=not trained_only, load_lr_scheduler_states=False
        )
    except (OSError, RuntimeError, KeyError, AssertionError) as error:
        raise CheckpointError(f"{path} cannot be read: {type(error).__name__}: {error}", hint=_HINT) from error
    finally:
        engine._config.load_universal_checkpoint = before
    if loaded is None:
        raise CheckpointError(f"{path} has no part for this process", hint=_HINT)


def convert(directory: Path) -> None:
    """Put the parts together, weight by weight, so that another number of processes can read them; one rank does. It
    takes as much room as the parts."""
    target, aside = directory / CONVERTED, directory / f".partial-{CONVERTED}"
    if target.exists():
        return
    shutil.rmtree(aside, ignore_errors=True)
    command = [sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal", "--inject_missing_state"]
    workers = ["--num_extract_workers", "1", "--num_merge_workers", "1"]
    folders = ["--input_folder", str(directory / PARTS), "--output_folder", str(aside)]
    done = subprocess.run([*command, *workers, *folders], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip() or "no reason given").splitlines()[-1]
        raise CheckpointError(f"{directory / PARTS} cannot be put together: {reason}", hint=_HINT)
    (directory / "latest_universal").unlink(missing_ok=True)  # it names the folder as it was called until now
    aside.rename(target)


def write_progress(directory: Path, progress: Progress) -> None:
    """Write trainer.json; one rank does."""
    (directory / PROGRESS_FILE).write_text(json.dumps(asdict(progress)) + "\n", encoding="utf-8")


def read_progress(directory: Path, now: Progress) -> Progress:
    """Read trainer.json, and refuse a state that does not fit the trainer as it is `now`."""
    path = directory / PROGRESS_FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found.get("format") != FORMAT:
            raise CheckpointError(
                f"{path} was not written by the deepspeed trainer, or by another version of it: its format is "
                f"{found.get('format')!r}, not {FORMAT!r}",
                hint="resume with the trainer that the run began with, or start a new run from its exported model",
            )
        progress = Progress(**found)
        for name, number, least in (("updates", progress.updates, 0), ("world_size", progress.world_size, 1)):
            if type(number) is not int or number < least:
                raise ValueError(f"{name} is {number!r}, not a whole number from {least}")
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}", hint=_HINT) from error
    _require_same(path, progress, now)
    return progress


def _require_same(path: Path, then: Progress, now: Progress) -> None:
    for name, before, setting in (
        ("stage", then.stage, "trainer.options.stage"),
        ("precision", then.precision, "trainer.precision and trainer.options.fp16"),
    ):
        if before != getattr(now, name):
            raise CheckpointError(
                f"{path} is of a run with {name} {before}, and this one has {getattr(now, name)}",
                hint=f"resume with the {setting} that the run began with, or start a new run from its exported model",
            )


@contextmanager
def _noting_failures(engine: Any) -> Iterator[list[BaseException]]:
    """Let DeepSpeed go on when a file cannot be written: other ranks wait for this one after it."""
    failures: list[BaseException] = []
    writer = engine.checkpoint_engine
    save = writer.save

    def noting(*arguments: Any, **more: Any) -> Any:
        try:
            return save(*arguments, **more)
        except (OSError, RuntimeError) as error:
            failures.append(error)
            return None

    writer.save = noting
    try:
        yield failures
    finally:
        del writer.save

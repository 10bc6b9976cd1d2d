"""Reading a checkpoint back: nothing of it is used before it is found to be what was written.

Place in the flow: a run's folder → **state, verified files** → the trainer's `restore` → the loop.
"""

from __future__ import annotations

import logging
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from grpo_core.errors import CheckpointError
from grpo_core.loop.checkpoint import LoopState
from grpo_core.loop.checksums import SUMS_FILE, add_sums, faults_of_files, has_sums
from grpo_core.protocols import TrainerBackend
from grpo_core.ranks.ranks import ALONE, Ranks
from grpo_core.recipe.folder import STATE_FILE, checkpoints_of, step_named, step_of
from grpo_core.regular_files import TEXT_BYTES, read_bytes

__all__ = ["read_state", "restore", "sound_before"]

logger = logging.getLogger("grpo_core")

_STATES = TypeAdapter(LoopState)
_MOST_FAULTS = 3


def read_state(checkpoint: Path, *, command: str = "resume") -> LoopState:
    """The loop's part of a checkpoint; raises `CheckpointError` where it is damaged, which names an older checkpoint
    that is sound, for `grpoctl` `command`."""
    state, fault = _state_of(checkpoint)
    if state is None:
        raise _damaged(checkpoint, [fault], command)
    return state


def restore(checkpoint: Path, trainer: TrainerBackend, ranks: Ranks = ALONE, *, command: str = "resume") -> None:
    """Verify all files of a checkpoint, and have the trainer read its own. Rank 0 verifies, all hear of it."""
    with ranks.stage("verify"):
        told = ranks.gather(_complaint(checkpoint, command) if ranks.is_first else None)[0]
    if told is not None:
        raise CheckpointError(told[0], hint=told[1])
    trainer.restore(checkpoint / "trainer")
    if ranks.is_first and has_sums(checkpoint):
        add_sums(checkpoint)


def sound_before(checkpoint: Path) -> Path | None:
    """The newest older checkpoint of the same run that is as it was written."""
    own = step_named(checkpoint.name)
    older = (each for each in checkpoints_of(checkpoint.resolve().parent.parent) if own is None or step_of(each) < own)
    return next((each for each in reversed(list(older)) if each.name != checkpoint.name and not _faults(each)), None)


def _complaint(checkpoint: Path, command: str) -> tuple[str, str | None] | None:
    if not has_sums(checkpoint):
        logger.warning(
            "%s has no %s, as it was written before there were checksums or lost them: it is taken as it is",
            checkpoint,
            SUMS_FILE,
        )
    faults = _faults(checkpoint)
    if not faults:
        return None
    error = _damaged(checkpoint, faults, command)
    return error.message, error.hint


def _faults(checkpoint: Path) -> list[str]:
    _, fault = _state_of(checkpoint)
    if fault:
        return [fault]
    return faults_of_files(checkpoint) if has_sums(checkpoint) else []


def _damaged(checkpoint: Path, faults: list[str], command: str) -> CheckpointError:
    if not checkpoint.is_dir():
        return CheckpointError(
            f"{checkpoint} was removed while it was read",
            hint="its run goes on, and keeps only its newest checkpoints: try again",
        )
    more = f", and {len(faults) - _MOST_FAULTS} more" if len(faults) > _MOST_FAULTS else ""
    sound = sound_before(checkpoint)
    hint = (
        "no older checkpoint of its run is sound; bring the files back, or start a new run"
        if sound is None
        else f"the newest older one that is sound: grpoctl {command} {sound}"
    )
    return CheckpointError(f"{checkpoint} is damaged: {'; '.join(faults[:_MOST_FAULTS])}{more}", hint=hint)


def _state_of(checkpoint: Path) -> tuple[LoopState | None, str]:
    """The state, or what is wrong with it."""
    path = checkpoint / STATE_FILE
    try:
        state = _STATES.validate_json(read_bytes(path, most=TEXT_BYTES))
    except OSError as error:
        return None, f"{STATE_FILE} cannot be read: {error.strerror}"
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        return None, f"{STATE_FILE} is not the state of a checkpoint: {f'{where}: ' if where else ''}{first['msg']}"
    if has_sums(checkpoint):
        faults = faults_of_files(checkpoint, only=STATE_FILE)
        return (None, faults[0]) if faults else (state, "")
    named = step_named(checkpoint.name)
    if named not in (None, state.step):
        return None, f"{STATE_FILE} is of step {state.step}, and the folder's name says {named}"
    return state, ""

"""A run that fails: the last whole step is written down before the error is told, where its weights are still there.

    error → all ranks hear of it → each says what state its weights are in → all alike: a checkpoint → the error, and
    where `grpoctl resume` goes on

Weights are those of the last whole step as long as no update of the next one has begun. With several ranks a checkpoint
may be a collective, so it is written by all of them or not at all; a rank that does not come in seconds is not waited
for.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from grpo_core.ending import as_error
from grpo_core.errors import CheckpointError, GrpoError, RankError
from grpo_core.loop.checkpoint import LoopState
from grpo_core.loop.keeping import Keeper
from grpo_core.loop.parts import Parts
from grpo_core.loop.records import FolderReplacedError
from grpo_core.plugins.faults import describe
from grpo_core.ranks.failure import Word

__all__ = ["rescue", "told"]

logger = logging.getLogger("grpo_core")


def told(error: BaseException) -> BaseException:
    """The error as it is to be told: code of a plugin that ends the program is a failure of the run like any other."""
    if isinstance(error, Exception | KeyboardInterrupt):
        return error
    what = f"code that the run calls ended it: {describe(error)}"
    ended = as_error(error) if isinstance(error, SystemExit) else GrpoError(what)
    ended.__cause__ = error
    return ended


def rescue(
    parts: Parts, keeper: Keeper, state: LoopState, error: BaseException, *, good_step: int, is_sound: bool
) -> None:
    """Write what can be written of a run that fails with `error`, which has been told to all ranks; a note on it says
    where the run goes on. `state` is that of the last whole step, `is_sound` whether its numbers are."""
    is_new = state.step not in (0, keeper.saved_step)
    problem = None
    try:
        with parts.ranks.regroup(_word(parts, keeper, state, error, is_sound=is_sound)) as words:
            problem = _obstacle(words)
            if is_new and problem is None:
                keeper.save_last(state, good_step=good_step)
    except (RankError, CheckpointError) as failed:
        problem = failed.message
    except Exception as failed:  # noqa: BLE001  a backend's own; the first error is the one to tell
        problem = str(describe(failed))
    lost = f"step {state.step} could not be saved: {problem}" if is_new and problem is not None else ""
    where = "" if isinstance(error, FolderReplacedError) else _where(parts, keeper.saved_step)
    if lost or where:
        error.add_note("; ".join(filter(None, [lost, where])))
    if lost and isinstance(error, KeyboardInterrupt) and parts.ranks.is_first:  # whose notes nobody prints
        logger.warning(lost)


def _word(parts: Parts, keeper: Keeper, state: LoopState, error: BaseException, *, is_sound: bool) -> Word:
    calls, alone = parts.calls, parts.ranks.world_size == 1
    obstacle = None
    if isinstance(error, FolderReplacedError):
        obstacle = "the run's folder is no more its own"
    elif calls.has_changed:
        obstacle = f"an update of step {state.step + 1} had begun"
    elif not is_sound:
        obstacle = "its numbers are not sound"
    elif keeper.is_writing:
        obstacle = "the fault is in writing it"
    elif calls.is_inside and not alone:
        obstacle = f"rank {parts.ranks.rank} was in the middle of what all ranks compute together"
    return Word(step=state.step, version=state.version, calls=calls.done, obstacle=obstacle)


def _obstacle(words: Sequence[Word]) -> str | None:
    """Why these ranks cannot write a checkpoint together."""
    said = [word.obstacle for word in words if word.obstacle is not None]
    if said:
        return said[0]
    return None if len(set(words)) == 1 else "the ranks were not at the same place"


def _where(parts: Parts, saved_step: int) -> str:
    if (parts.run_dir / "final").exists():
        return ""  # all steps were done
    command = f"`grpoctl resume {parts.run_dir}`"
    return f"{command} goes on from step {saved_step}" if saved_step else f"{command} begins again"

"""The live parts of a run on one rank: data, scorer, rollout backend and trainer backend, built from the plan."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from grpo_core.loop.ahead import Ahead
from grpo_core.loop.calls import TrainerCalls
from grpo_core.loop.checked import checked_rollout, checked_trainer
from grpo_core.loop.prepare import Prepared
from grpo_core.loop.weights import WeightSync
from grpo_core.plugins.faults import describe
from grpo_core.plugins.targets import build_by_factory
from grpo_core.protocols import RolloutBackend, TrainerBackend
from grpo_core.ranks.ranks import ALONE, Ranks
from grpo_core.recipe.context import BackendContext
from grpo_core.recipe.plan import LaunchPlan, PlannedComponent
from grpo_core.reward.scoring import Scorer
from grpo_core.types import BuildContext

__all__ = ["Parts", "backend_context", "build_component", "open_parts", "open_scorer"]

logger = logging.getLogger("grpo_core")

_LAST_WAIT_S = 10.0
"""For a thread that draws while a run ends: torch ends a process badly under one that is still in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the loop works with."""

    plan: LaunchPlan
    """The resolved run."""
    run_dir: Path
    """Its folder."""
    prepared: Prepared
    """Prompts."""
    scorer: Scorer
    """Rewards."""
    rollout: RolloutBackend
    """Generation."""
    trainer: TrainerBackend
    """Updates."""
    weights: WeightSync
    """From trainer to rollout."""
    ranks: Ranks = ALONE
    """The processes that train together."""
    ahead: Ahead | None = None
    """Draws a step's completions during the one before; None: it does not."""
    calls: TrainerCalls = field(default_factory=TrainerCalls)
    """What the trainer was asked to do."""


@contextmanager
def open_parts(plan: LaunchPlan, run_dir: Path, prepared: Prepared, ranks: Ranks = ALONE) -> Iterator[Parts]:
    """Build everything, and close it again whatever happens, also where closing fails."""
    calls = TrainerCalls()
    context = backend_context(plan, run_dir, total_steps=prepared.total_steps, ranks=ranks)
    with ExitStack() as stack:
        scorer = stack.enter_context(open_scorer(plan, prepared, run_dir, ranks))
        trainer = calls.around(checked_trainer(build_component(plan.trainer, context), plan.trainer))
        stack.enter_context(closing("the trainer", trainer.close))
        rollout = checked_rollout(build_component(plan.rollout, context), plan.rollout)
        ahead = None
        if plan.recipe.rollout.max_staleness:
            ahead = Ahead(lambda requests: tuple(rollout.generate(requests)))
            stack.callback(ahead.settle, _LAST_WAIT_S)  # after `close`, which ends what is drawn
        stack.enter_context(closing("the rollout backend", rollout.close))
        yield Parts(
            plan=plan,
            run_dir=run_dir,
            prepared=prepared,
            scorer=scorer,
            rollout=rollout,
            trainer=trainer,
            weights=WeightSync(trainer, rollout, plan.weights_route, partial(_settle, ahead, ranks)),
            ranks=ranks,
            ahead=ahead,
            calls=calls,
        )


@contextmanager
def closing(what: str, close: Callable[[], None]) -> Iterator[None]:
    """Close a part at the end. A failure of that is a note on the error that came before it, and a word on stderr where
    there is none: it takes nothing from what was done."""
    try:
        yield
    except BaseException as error:
        fault = _fault_of(close)
        if fault is not None:
            error.add_note(f"closing {what} failed as well: {fault}")
        raise
    fault = _fault_of(close)
    if fault is not None:
        logger.error("closing %s failed: %s", what, fault)


def _fault_of(close: Callable[[], None]) -> str | None:
    try:
        close()
    except (Exception, SystemExit) as error:  # noqa: BLE001  a plugin's own; what was done before is worth more
        return str(describe(error))
    return None


def _settle(ahead: Ahead | None, ranks: Ranks) -> None:
    """Wait until no rank draws."""
    if ahead is not None:
        ahead.settle()
        ranks.gather(None)


@contextmanager
def open_scorer(plan: LaunchPlan, prepared: Prepared, run_dir: Path, ranks: Ranks = ALONE) -> Iterator[Scorer]:
    """Build the rewards, and end their workers afterwards."""
    context = BuildContext(seed=plan.recipe.run.seed, run_dir=run_dir, **_place(ranks))
    scorer = Scorer(plan.rewards, plan.recipe.scoring, prepared.columns, context)
    with closing("the rewards", scorer.close):
        yield scorer


def backend_context(plan: LaunchPlan, run_dir: Path, *, total_steps: int, ranks: Ranks = ALONE) -> BackendContext:
    """What a backend is told about the run."""
    return BackendContext(
        seed=plan.recipe.run.seed,
        run_dir=run_dir,
        model=plan.recipe.model,
        rollout=plan.recipe.rollout,
        trainer=plan.recipe.trainer,
        objective=plan.recipe.objective,
        total_updates=total_steps * plan.batch.updates_per_step,
        **_place(ranks),
    )


def _place(ranks: Ranks) -> dict[str, int]:
    """Which process this is, for those who build for it."""
    return {
        "rank": ranks.rank,
        "world_size": ranks.world_size,
        "local_rank": ranks.local_rank,
        "local_world_size": ranks.local_world_size,
    }


def build_component(component: PlannedComponent, context: BuildContext) -> object:
    """The backend that a planned component stands for, as its factory gives it."""
    return build_by_factory(component.target, component.options_model, component.options, context)

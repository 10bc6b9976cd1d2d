"""The steps of a run, with evaluation, checkpoints and observers between them. Every rank runs this; rank 0 alone
records, watches the numbers and has observers."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from grpo_core.ending import advising
from grpo_core.errors import Collapse, GrpoError
from grpo_core.loop.checkpoint import LoopState, forget_checkpoints, good_checkpoint
from grpo_core.loop.closing import close_with_report, way_on
from grpo_core.loop.collapse import CollapseWatch, collapse_warning
from grpo_core.loop.evaluate import evaluate
from grpo_core.loop.guards import ZeroRewardGuard, check_finite, check_gap_of
from grpo_core.loop.interrupt import Interrupt, catch_interrupt
from grpo_core.loop.keeping import Keeper, check_best
from grpo_core.loop.lock import RunLock
from grpo_core.loop.parts import Parts, open_parts
from grpo_core.loop.prepare import Prepared
from grpo_core.loop.probes import answer_probes, probe_due, probe_prompts
from grpo_core.loop.records import NoRecords, Records, evaluations_of
from grpo_core.loop.rescue import rescue, told
from grpo_core.loop.restore import read_state, restore
from grpo_core.loop.sizes import (
    LIBRARY_BYTES,
    compared,
    forget_peak,
    is_on_gpu,
    peak_bytes,
    resident_bytes,
    training_bytes,
)
from grpo_core.loop.step import run_step
from grpo_core.loop.threads import settle_threads
from grpo_core.observe.trackers import add_trackers
from grpo_core.plugins.observers import Observers, load_observers
from grpo_core.ranks.ranks import ALONE, Ranks
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.types import BuildContext, EvaluationReport, RunOutcome, RunStarted, StepReport
from grpo_core.types.report import RunStatus

__all__ = ["train"]

logger = logging.getLogger("grpo_core")


@dataclass(slots=True, kw_only=True)
class Progress:
    """What changes while a run goes on."""

    state: LoopState
    """For the next checkpoint."""
    saved_step: int
    """The step of the newest checkpoint; 0 when there is none."""
    good_step: int = 0
    """The newest step before rewards fell."""
    is_sound: bool = True
    """Whether the numbers of the last step were."""
    unrecorded: StepReport | None = None
    """The last step, where what follows it was cut off before it was recorded."""
    first_evaluation: EvaluationReport | None = None
    """Before training."""
    last_evaluation: EvaluationReport | None = None
    """The latest."""
    last_report: StepReport | None = None
    """The latest step."""


@dataclass(frozen=True, slots=True)
class Loop:
    """What goes from step to step."""

    parts: Parts
    progress: Progress
    records: Records | NoRecords
    observers: Observers
    interrupt: Interrupt
    resident_bytes: int
    """Of this process before a model was loaded."""


def train(
    plan: LaunchPlan,
    run_dir: Path,
    prepared: Prepared,
    checkpoint: Path | None,
    ranks: Ranks = ALONE,
    *,
    lock: RunLock | None = None,
) -> RunOutcome:
    """Run from `checkpoint`, or from the beginning, to the end; observers hear of every way it can end. `lock` is the
    folder's, on rank 0."""
    records = Records(run_dir, lock) if ranks.is_first else NoRecords()
    records.show_images_as(prepared.image_text)
    progress = start(prepared, checkpoint)
    state = settle_threads(progress.state, processes=ranks.world_size)
    progress.state = replace(state, per_machine=ranks.local_world_size)
    observers = watching(plan, run_dir) if ranks.is_first else load_observers(())
    before = resident_bytes()
    with advising(partial(way_on, run_dir)), catch_interrupt(ranks) as interrupt:
        try:
            with ranks.stage("load"), open_parts(plan, run_dir, prepared, ranks) as parts:
                if checkpoint is not None:
                    restore(checkpoint, parts.trainer, ranks)
                    parts.calls.has_changed = False
                take_up(parts, progress, records, checkpoint)
                evaluate_first(parts, progress, records)
                if progress.state.step == 0:
                    probe(parts, progress, records)
                observers.run_started(started(parts, progress))
                run_or_rescue(Loop(parts, progress, records, observers, interrupt, before))
        except BaseException as error:
            interrupt.begin_last()
            first = ranks.settle(told(error))
            status: RunStatus = "interrupted" if isinstance(first, KeyboardInterrupt) else "failed"
            observers.run_finished(outcome(run_dir, progress, status=status, message=str(first)))
            if first is error:
                raise
            raise first from error
        ended = outcome(run_dir, progress, status="interrupted" if unfinished(parts, progress) else "finished")
        observers.run_finished(ended)
        if ranks.is_first and ended.status == "finished":
            close_with_report(run_dir)
    return ended


def watching(plan: LaunchPlan, run_dir: Path) -> Observers:
    """The observers and trackers of the plan."""
    observers = load_observers([(observer.distribution, observer.module) for observer in plan.observers])
    add_trackers(observers, plan.trackers, BuildContext(seed=plan.recipe.run.seed, run_dir=run_dir))
    return observers


def start(prepared: Prepared, checkpoint: Path | None) -> Progress:
    """The state a run starts from."""
    if checkpoint is None:
        state = LoopState(step=0, version=0, zero_reward_steps=0, fingerprint=prepared.fingerprint)
        return Progress(state=state, saved_step=0)
    state = replace(read_state(checkpoint), fingerprint=prepared.fingerprint)
    prepared.feed.restore(state.data)
    return Progress(state=state, saved_step=state.step)


def take_up(parts: Parts, progress: Progress, records: Records | NoRecords, checkpoint: Path | None) -> None:
    """The folder becomes that of a run that stands at `checkpoint` and follows this plan. Until every rank has loaded
    all there is to load nothing in it changes: a resume that fails, or is refused, leaves it as it was."""
    parts.ranks.gather(None)
    records.write_plan(parts.plan)
    records.cut_back(progress.state.step if checkpoint else -1)
    if parts.ranks.is_first:
        forget_checkpoints(parts.run_dir, progress.state.step)
    recall_evaluations(progress, records)


def started(parts: Parts, progress: Progress) -> RunStarted:
    """What observers are told at the beginning."""
    return RunStarted(
        run_dir=parts.run_dir,
        plan=parts.plan.model_dump(mode="json"),
        first_step=progress.state.step + 1,
        total_steps=parts.prepared.total_steps,
        evaluation=progress.first_evaluation if progress.state.step == 0 else None,
    )


def evaluate_first(parts: Parts, progress: Progress, records: Records | NoRecords) -> None:
    """The evaluation before training: what every later one is compared with."""
    if progress.state.step == 0 and parts.prepared.evaluation:
        progress.first_evaluation = progress.last_evaluation = evaluate_now(parts, progress)
        records.write_evaluation(progress.first_evaluation)
        check_best(parts.plan.recipe.run.save_best, progress.first_evaluation)


def run_or_rescue(loop: Loop) -> None:
    """Everything from the next step to the files of the last. Of what fails on the way all ranks hear, and the last
    whole step is saved, before anything is closed."""
    parts, progress, interrupt = loop.parts, loop.progress, loop.interrupt
    keeper = Keeper(parts, saved_step=progress.saved_step, read_rows=loop.records.rows, held=interrupt.held)
    try:
        interrupt.trains = True
        run_steps(loop, keeper)
        finish(parts, progress, loop.records, keeper)
    except BaseException as error:
        interrupt.begin_last()
        first = parts.ranks.settle(told(error))
        if progress.unrecorded is not None:
            record(loop, progress.unrecorded)
        rescue(parts, keeper, progress.state, first, good_step=progress.good_step, is_sound=progress.is_sound)
        if first is error:
            raise
        raise first from error
    finally:
        progress.saved_step = keeper.saved_step


def run_steps(loop: Loop, keeper: Keeper) -> None:
    """All steps that are left, until the end or an interrupt."""
    parts, progress, ranks = loop.parts, loop.progress, loop.parts.ranks
    run, total = parts.plan.recipe.run, parts.prepared.total_steps
    guard = ZeroRewardGuard(run.zero_reward_patience_steps, streak=progress.state.zero_reward_steps)
    watch = CollapseWatch.over(loop.records.rows())
    progress.good_step = watch.good_step
    catch_up(loop, keeper)
    first = progress.state.step + 1
    for step in range(first, total + 1):
        asked = ranks.gather((loop.interrupt.requested, keeper.is_time()))
        if any(requested for requested, _ in asked):
            break
        if asked[0][1]:  # by the clock of rank 0
            keeper.save(progress.state, good_step=progress.good_step)
        if step == first:
            forget_peak(on_gpu=is_on_gpu(parts.plan))
        result = run_step(parts, step=step, total_steps=total, version=progress.state.version, check_gap=step == first)
        guard_error, is_sound = _caught(parts, guard, result.report) if ranks.is_first else (None, True)
        progress.state = replace(
            progress.state,
            step=step,
            version=result.version,
            zero_reward_steps=guard.streak,
            data=dict(result.data),
        )
        if step == first:
            tell_memory(loop)
        progress.is_sound, parts.calls.has_changed = is_sound, False
        report = judged(parts, watch, result.report) if ranks.is_first else result.report
        progress.unrecorded, progress.good_step = report, watch.good_step
        if evaluation_due(parts, step):
            progress.last_evaluation = evaluate_now(parts, progress)
            report = replace(report, evaluation=progress.last_evaluation)
        record(loop, report)
        if guard_error is not None:
            raise guard_error
        probe(parts, progress, loop.records)
        if report.evaluation is not None:
            keeper.keep_best(report.evaluation, progress.first_evaluation)
        if run.save_steps and step % run.save_steps == 0:
            keeper.save(progress.state, good_step=progress.good_step)
    keeper.save(progress.state, good_step=progress.good_step)


def tell_memory(loop: Loop) -> None:
    """What the first step of this process took of memory, beside the estimate; told by rank 0, of itself."""
    parts = loop.parts
    if not parts.ranks.is_first or parts.plan.weights_route != "shared":  # an engine's memory is not in the estimate
        return
    on_gpu = is_on_gpu(parts.plan)
    estimated = training_bytes(parts.plan, parts.prepared.longest_prompt, parts.ranks.world_size)
    if not on_gpu:
        estimated += loop.resident_bytes + LIBRARY_BYTES
    line, is_off = compared(estimated, peak_bytes(on_gpu=on_gpu))
    if is_off:
        logger.warning(line)
    else:
        print(line, flush=True)


def catch_up(loop: Loop, keeper: Keeper) -> None:
    """What follows a step, for the one that a resumed run goes on from, where the run ended before it was done."""
    parts, progress, records = loop.parts, loop.progress, loop.records
    step, latest = progress.state.step, progress.last_evaluation
    if step == 0:
        return
    has_evaluation = latest is not None and latest.step == step
    has_evaluation, has_probes = parts.ranks.from_first((has_evaluation, records.has_probes(step)))
    if evaluation_due(parts, step) and not has_evaluation:
        progress.last_evaluation = evaluate_now(parts, progress)
        records.add_evaluation(progress.last_evaluation)
        keeper.keep_best(progress.last_evaluation, progress.first_evaluation)
    if not has_probes:
        probe(parts, progress, records)


def record(loop: Loop, report: StepReport) -> None:
    """Write a step down, and tell observers."""
    loop.progress.unrecorded = None
    loop.records.write_step(report)
    loop.progress.last_report = report
    loop.observers.step_finished(report)


def judged(parts: Parts, watch: CollapseWatch, report: StepReport) -> StepReport:
    """The report with what the numbers so far say about the run's health; a collapse that begins is said."""
    health = watch.look(report.step, report.metrics)
    if health.begins is not None:
        kept = good_checkpoint(parts.run_dir, watch.good_step)
        logger.warning(collapse_warning(parts.plan.recipe, report.step, health.begins, kept))
    return replace(report, metrics={**report.metrics, **health.metrics})


def _caught(parts: Parts, guard: ZeroRewardGuard, report: StepReport) -> tuple[GrpoError | None, bool]:
    """The reason to stop after this step, if there is one, and whether its numbers are sound; the step is recorded
    first."""
    silence = None
    try:
        guard.watch(report.groups, report.step)
    except Collapse as error:
        silence = error
    try:
        check_finite(report)
        check_gap_of(report, parts.plan.recipe.rollout.max_gap_nats)
    except GrpoError as error:
        return silence or error, False
    return silence, True


def evaluation_due(parts: Parts, step: int) -> bool:
    """Whether step `step` is followed by an evaluation."""
    every = parts.plan.recipe.evaluation.every_steps
    last = step == parts.prepared.total_steps
    return bool(parts.prepared.evaluation) and (last or (every is not None and step % every == 0))


def evaluate_now(parts: Parts, progress: Progress) -> EvaluationReport:
    """Evaluate the weights as they stand."""
    parts.weights.to(progress.state.version)
    return evaluate(parts, parts.prepared.evaluation, step=progress.state.step)


def probe(parts: Parts, progress: Progress, records: Records | NoRecords) -> None:
    """Answer the probe prompts, when that is due after this step."""
    run, state = parts.plan.recipe.run, progress.state
    if probe_due(run, state.step, total_steps=parts.prepared.total_steps):
        prompts = probe_prompts(parts.prepared, run)
        with parts.ranks.stage("probes"):
            records.write_probes(state.step, answer_probes(parts, prompts, step=state.step, version=state.version))


def finish(parts: Parts, progress: Progress, records: Records | NoRecords, keeper: Keeper) -> None:
    """The model itself when all steps are done; then the error of whatever could not be written."""
    if not unfinished(parts, progress):
        step, after = progress.state.step, progress.last_evaluation
        keeper.finish(step, progress.first_evaluation, after if after is not None and after.step == step else None)
    keeper.require_all()
    records.finish()


def unfinished(parts: Parts, progress: Progress) -> bool:
    """Whether steps are left."""
    return progress.state.step < parts.prepared.total_steps


def recall_evaluations(progress: Progress, records: Records | NoRecords) -> None:
    """The evaluations that an earlier part of this run recorded: the one before training, and the latest."""
    found = evaluations_of(records.rows())
    if found:
        progress.first_evaluation = found[0] if found[0].step == 0 else None
        progress.last_evaluation = found[-1]


def outcome(run_dir: Path, progress: Progress, *, status: RunStatus, message: str = "") -> RunOutcome:
    """How the run ended, for observers."""
    return RunOutcome(
        status=status,
        run_dir=run_dir,
        steps=progress.state.step,
        saved_step=progress.saved_step,
        message=message,
        first_evaluation=progress.first_evaluation,
        last_evaluation=progress.last_evaluation,
        metrics=progress.last_report.metrics if progress.last_report else {},
    )

"""Starting a run, and going on with one: everything between a resolved plan and the first step."""

from __future__ import annotations

import importlib.metadata
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from grpo_core.errors import CheckpointError, DataError, PluginError, UsageError
from grpo_core.loop.checkpoint import newest_checkpoint
from grpo_core.loop.evaluate import evaluate
from grpo_core.loop.interrupt import ends_at_once
from grpo_core.loop.lock import RunLock, hold
from grpo_core.loop.parts import open_parts
from grpo_core.loop.prepare import Prepared, prepare
from grpo_core.loop.restore import read_state, restore
from grpo_core.loop.sizes import is_on_cpu, planned_shape, settled, training_bytes
from grpo_core.loop.train import train
from grpo_core.loop.unstarted import holds_unstarted_run, refusal
from grpo_core.model.load import count_parameters
from grpo_core.model.lora import trainable_parameters
from grpo_core.ranks.place import Processes
from grpo_core.ranks.room import memory_warning, require_devices, require_memory
from grpo_core.recipe.code import bring_in_code
from grpo_core.recipe.folder import STATE_FILE, checkpoints_of, is_checkpoint
from grpo_core.recipe.numbers import print_plan
from grpo_core.recipe.plan import OF_A_RUN, LaunchPlan, PlannedComponent, require_unfinished, run_folder
from grpo_core.types import EvaluationReport, RunOutcome

__all__ = [
    "check_state",
    "evaluate_model",
    "exit_code",
    "join",
    "launch",
    "make_ready",
    "open_run",
    "processes_before",
    "resume",
    "start",
]

logger = logging.getLogger("grpo_core")

_EXIT_CODES = {"finished": 0, "failed": 4, "interrupted": 130}


@ends_at_once()
def launch(plan: LaunchPlan, *, plan_only: bool = False, processes: Processes | None = None) -> int:
    """Prepare, print the plan, and train; `plan_only` stops once the run's folder is there for processes that something
    else starts, perhaps elsewhere."""
    plan, prepared = make_ready(plan, processes, here=None if plan_only else processes)
    if processes is not None:
        several = {"processes": processes.count, "per_machine": processes.per_node}
        plan = plan.model_copy(update=several)
    with take_run_dir(plan) as (run_dir, lock):
        write_plan(plan, run_dir)
        print(f"run folder: {run_dir}", flush=True)
        if plan_only:
            return 0
        if processes is not None:
            with lock.handed_over():
                return start(processes, [str(run_dir)])
        return exit_code(train(plan, run_dir, prepared, None, lock=lock))


def make_ready(plan: LaunchPlan, processes: Processes | None, *, here: Processes | None) -> tuple[LaunchPlan, Prepared]:
    """Everything that comes before a model is loaded or a file is written, and the plan printed: the plan with all
    that is found at launch, and what was prepared. `here` are the `processes` that start on this machine, which must
    have room for them."""
    if here is not None:
        require_devices(here)
    bring_in_code(plan, plan.origins)
    prepared = prepare(plan)
    plan = settled(plan, prepared.longest_prompt, processes or Processes())
    announce(plan, prepared, processes)
    needed = training_bytes(plan, prepared.longest_prompt, (processes or Processes()).count)
    if here is not None:
        require_memory(here, needed)
    if warning := memory_warning(needed, on_cpu=is_on_cpu(plan)):
        print(f"warning: {warning}", file=sys.stderr)
    return plan, prepared


@ends_at_once()
def resume(
    path: Path,
    *,
    allow_changes: bool = False,
    processes: Processes | None = None,
    oversubscribe: bool = False,
    change: Callable[[LaunchPlan], LaunchPlan] | None = None,
) -> int:
    """Go on with the run in folder `path`, from its newest checkpoint, or from the checkpoint that `path` is.

    `processes` None: as many as before, with `oversubscribe` although they do not fit. `change` makes the plan it
    goes on by of the one it began with; None: the same.
    """
    with hold(run_folder(path)) as lock:
        plan, run_dir, checkpoint = open_run(path, allow_changes=allow_changes)
        processes = processes or replace(processes_before(plan, checkpoint), oversubscribe=oversubscribe)
        if processes.several:
            require_devices(processes)
        plan = change(plan) if change else plan
        bring_in_code(plan, plan.origins if change else {}, otherwise=OF_A_RUN)
        prepared = prepare(plan, run_dir=run_dir)
        plan = settled(plan, prepared.longest_prompt, processes)
        if checkpoint is not None:
            check_state(checkpoint, prepared, allow_changes=allow_changes)
        for leftover in run_dir.rglob(".partial-*"):
            shutil.rmtree(leftover)
        announce(plan, prepared, processes)
        if not processes.several:
            return exit_code(train(plan, run_dir, prepared, checkpoint, lock=lock))
        require_memory(processes, training_bytes(plan, prepared.longest_prompt, processes.count))
        with tempfile.TemporaryDirectory() as scratch, lock.handed_over():
            plan.write(Path(scratch))
            arguments = [str(path), "--plan", scratch, *(["--allow-changes"] if allow_changes else [])]
            return start(processes, arguments)


def join(processes: Processes) -> int:
    """Start the processes of a run whose plan another machine has."""
    require_devices(processes)
    return start(processes, ["."])  # rank 0, on machine 0, has the plan


def start(processes: Processes, arguments: Sequence[str]) -> int:
    """Start the processes of a run on this machine; `arguments` are those of `grpo_core.worker`."""
    from grpo_core.ranks import launcher  # torch's elastic agent, which a run of one process does without

    return launcher.start(processes, arguments)


def open_run(path: Path, *, allow_changes: bool) -> tuple[LaunchPlan, Path, Path | None]:
    """The plan of the run that `path` is, or is a checkpoint of; its folder; and where it goes on from. Who calls it
    holds the folder."""
    run_dir, checkpoint = run_folder(path), checkpoint_in(path)
    require_unfinished(run_dir)
    plan = LaunchPlan.read(run_dir)
    if not allow_changes:
        check_versions(plan)
    if checkpoint is not None:
        read_state(checkpoint)
    for stranger in strangers_in(run_dir):
        logger.warning("%s is no checkpoint: its name or kind is another; it is left alone", stranger)
    return plan, run_dir, checkpoint


def evaluate_model(plan: LaunchPlan, run: Path | None) -> EvaluationReport:
    """Evaluate the plan's model, or the newest weights of `run`, on the plan's evaluation rows.

    Without a run, a plan that holds no rows out is evaluated on all of its dataset.
    """
    checkpoint = None if run is None else checkpoint_in(run)
    if run is not None and checkpoint is None:
        raise CheckpointError(f"{run} has no checkpoint yet", hint="evaluate its model with --model")
    state = None if checkpoint is None else read_state(checkpoint, command="eval")
    bring_in_code(plan, plan.origins, otherwise=None if run is None else OF_A_RUN, to=sys.stderr)
    prepared = prepare(plan)
    print_warnings(prepared)
    prompts = prepared.evaluation
    if not prompts and (run is not None or prepared.feed.rows is None):
        raise DataError(f"{run or 'a stream'} has no evaluation rows", hint="name some with --eval-dataset")
    with tempfile.TemporaryDirectory() as scratch, open_parts(plan, Path(scratch), prepared) as parts:
        if checkpoint is not None:
            restore(checkpoint, parts.trainer, command="eval")
        parts.weights.to(state.version if state else 0)
        return evaluate(parts, prompts or prepared.train, step=state.step if state else 0)


def announce(plan: LaunchPlan, prepared: Prepared, processes: Processes | None) -> None:
    """Print what will happen to stdout, and what was noticed to stderr."""
    model, lora = plan.recipe.model, plan.recipe.trainer.lora
    adapter = None if lora is None else trainable_parameters(model, lora)
    print_plan(
        plan,
        rows=prepared.feed.rows,
        mix=[(each.name, float(share), each.rows) for each, share in prepared.feed.sources if each.name],
        evaluation_rows=len(prepared.evaluation),
        longest_prompt=prepared.longest_prompt,
        parameters=count_parameters(model),
        shape=planned_shape(plan),
        adapter=adapter,
        ranks=(processes or Processes()).count,
    )
    for note in prepared.notes:
        print(f"note: {note}", file=sys.stderr)
    print_warnings(prepared)


def print_warnings(prepared: Prepared) -> None:
    """What is allowed and probably not meant, to stderr."""
    for warning in prepared.warnings:
        print(f"warning: {warning}", file=sys.stderr)


@contextmanager
def take_run_dir(plan: LaunchPlan) -> Iterator[tuple[Path, RunLock]]:
    """The run's folder, made or taken over, and held; refuses one that has something in it."""
    chosen = plan.recipe.run.directory
    path = Path(chosen).expanduser() if chosen else Path("runs") / time.strftime("%Y%m%d-%H%M%S")
    require_vacant(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path} cannot be made: {error.strerror}", hint="choose another --output") from error
    with hold(path) as lock:
        require_vacant(path)  # another run may have begun there meanwhile
        if holds_unstarted_run(path):
            print(f"the run in {path} made no step: this one begins in its place", flush=True)
        yield path, lock


def require_vacant(path: Path) -> None:
    """Raise `UsageError` for a folder in which no new run may begin."""
    reason = refusal(path)
    if reason is not None:
        what, _, hint = reason.partition("; ")
        raise UsageError(f"{path} {what}", hint=hint)


def write_plan(plan: LaunchPlan, run_dir: Path) -> None:
    """Write plan.json; the first thing that shows whether the folder can be written."""
    try:
        plan.write(run_dir)
    except OSError as error:
        raise UsageError(
            f"{run_dir} cannot be written: {error.strerror}", hint="choose another --output, or free disk space"
        ) from error


def exit_code(outcome: RunOutcome) -> int:
    """What the program exits with."""
    return _EXIT_CODES[outcome.status]


def checkpoint_in(path: Path) -> Path | None:
    """The checkpoint that `path` is, or the newest one of the run that it is; None: the run has none yet."""
    return path if is_checkpoint(path) else newest_checkpoint(path)


def strangers_in(run_dir: Path) -> list[Path]:
    """What lies among the checkpoints of a run and is none."""
    folder, known = run_dir / "checkpoints", checkpoints_of(run_dir)
    there = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in there if path not in known and not path.name.startswith("."))


def processes_before(plan: LaunchPlan, checkpoint: Path | None) -> Processes:
    """As many processes as the run had when it wrote its checkpoint, or was started with; says so where it had
    several."""
    state = None if checkpoint is None else read_state(checkpoint)
    count, per_machine = (plan.processes, plan.per_machine) if state is None else (state.processes, state.per_machine)
    if count <= 1:
        return Processes()
    if per_machine not in (0, count):
        raise UsageError(
            f"the run had {count} processes, {per_machine} on each machine: it is not clear how many it should go on "
            "with here",
            hint="say so: --nproc-per-node N, and --nnodes, --node-rank and --rdzv-endpoint for several machines",
        )
    print(f"going on with {count} processes, as before; --nproc-per-node N for another number", flush=True)
    return Processes(per_node=count)


def check_state(checkpoint: Path, prepared: Prepared, *, allow_changes: bool) -> None:
    """Refuse other data than the checkpoint was trained on."""
    state = read_state(checkpoint)
    try:
        is_same = state.fingerprint == prepared.fingerprint and prepared.feed.restore(state.data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{checkpoint / STATE_FILE} is damaged: its 'data' is no position in a streamed dataset",
            hint="go on from an older checkpoint: grpoctl resume RUN/checkpoints/step-…",
        ) from error
    if not is_same and not allow_changes:
        raise DataError(
            "the dataset is not the one this run was trained on: its rows changed",
            hint="bring the old rows back, or go on with the new ones by --allow-changes",
        )


def check_versions(plan: LaunchPlan) -> None:
    """Refuse plugins of another version than the run was started with."""
    changed = []
    for component in _components(plan):
        if component.distribution is None or component.version is None:
            continue
        try:
            now = importlib.metadata.version(component.distribution)
        except importlib.metadata.PackageNotFoundError:
            now = "not installed"
        if now != component.version:
            changed.append(f"{component.distribution} {component.version} is now {now}")
    if changed:
        raise PluginError(
            f"the run was started with other plugins: {'; '.join(sorted(set(changed)))}",
            hint="install those versions, or go on with these by --allow-changes",
        )


def _components(plan: LaunchPlan) -> Iterator[PlannedComponent]:
    yield from (reward.component for reward in plan.rewards)
    yield plan.rollout
    yield plan.trainer
    for dataset in (*plan.datasets, plan.evaluation):
        if dataset is not None and dataset.preprocess is not None:
            yield dataset.preprocess

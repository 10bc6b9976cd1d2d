"""One process of a run that has several: it meets the others, hears the plan from rank 0, and trains with them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import torch

from grpo_core.errors import DataError
from grpo_core.loop.interrupt import ends_at_once
from grpo_core.loop.launch import check_state, exit_code, open_run
from grpo_core.loop.lock import RunLock, hold
from grpo_core.loop.prepare import prepare
from grpo_core.loop.train import train
from grpo_core.machine import available_cores
from grpo_core.ranks.group import Opening, open_ranks
from grpo_core.ranks.place import Place
from grpo_core.recipe.code import code_of_plan, list_code
from grpo_core.recipe.plan import OF_A_RUN, LaunchPlan, run_folder

__all__ = ["work"]


@ends_at_once()
def work(
    path: Path,
    place: Place | None,
    *,
    plan_folder: Path | None = None,
    allow_changes: bool = False,
    told: bool = False,
) -> int:
    """Take part in the run in folder `path`, which begins, or goes on from its newest checkpoint; gives the exit code.

    `place` says which process this is; None: the only one. Only rank 0 holds the folder, and looks for the plan: in
    `plan_folder` where the run is to follow another one than it did. `told`: whoever started it was told which code it
    runs.
    """
    held = ExitStack()
    lock: RunLock | None = None

    def opening() -> Opening:
        nonlocal lock
        lock = held.enter_context(hold(run_folder(path)))
        plan, run_dir, checkpoint = open_run(path, allow_changes=allow_changes)
        plan = LaunchPlan.read(plan_folder) if plan_folder else plan
        return Opening(
            wait_limit_s=plan.recipe.run.wait_limit_s,
            run=str(run_dir.resolve()),
            checkpoint=None if checkpoint is None else str(checkpoint.resolve()),
            plan=plan.model_dump_json(),
        )

    with held, open_ranks(place, opening) as (ranks, opened):
        share_cores(ranks.local_world_size)
        plan = LaunchPlan.model_validate_json(opened.plan)
        if ranks.is_first and not told:
            list_code(code_of_plan(plan), {}, otherwise=OF_A_RUN)
        run_dir = run_folder(path) if ranks.is_first else Path(opened.run)
        checkpoint = None if opened.checkpoint is None else Path(opened.checkpoint)
        with ranks.stage("prepare"):
            prepared = prepare(plan, run_dir=run_dir)
            check_rows(ranks.gather(prepared.fingerprint))
            if checkpoint is not None:
                check_state(checkpoint, prepared, allow_changes=allow_changes)
        return exit_code(train(plan, run_dir, prepared, checkpoint, ranks, lock=lock))


def share_cores(processes: int) -> None:
    """Give each process of this machine an equal part of its cores for torch, unless the user says otherwise."""
    if processes > 1 and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, available_cores() // processes))


def check_rows(fingerprints: Sequence[str]) -> None:
    """Refuse to train where ranks read different rows."""
    other = next((rank for rank, one in enumerate(fingerprints) if one != fingerprints[0]), None)
    if other is not None:
        raise DataError(
            f"rank {other} read other rows than rank 0",
            hint="dataset and evaluation files must be the same on every machine",
        )

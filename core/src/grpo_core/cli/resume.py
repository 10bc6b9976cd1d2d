"""`grpoctl resume`: go on with a run that was interrupted."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grpo_core.cli.common import Endpoint, NodeRank, Nodes, Oversubscribe, PerNodeOrBefore, PluginFiles, processes_of
from grpo_core.cli.flags import SetOption

if TYPE_CHECKING:
    from grpo_core.recipe.plan import LaunchPlan

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("resume")(resume)


def resume(
    run: Annotated[Path, typer.Argument(help="A run's folder, or one of its checkpoints/step-…", metavar="RUN")],
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Go on although the dataset or a plugin's version changed.")
    ] = False,
    set_: SetOption = None,
    plugin: PluginFiles = None,
    nproc_per_node: PerNodeOrBefore = None,
    nnodes: Nodes = 1,
    node_rank: NodeRank = 0,
    rdzv_endpoint: Endpoint = None,
    oversubscribe: Oversubscribe = False,
) -> None:
    """Go on with a run from its newest checkpoint; its numbers are those of an uninterrupted run.

    With --set it goes on otherwise: runs/a/checkpoints/step-000150 --set trainer.learning_rate=5e-7.
    """
    from grpo_core.loop.lock import hold
    from grpo_core.ranks.place import Processes
    from grpo_core.recipe.plan import require_unfinished, run_folder

    processes = processes_of(nproc_per_node or 1, nnodes, node_rank, rdzv_endpoint, oversubscribe=oversubscribe)
    if nproc_per_node and processes is None:
        processes = Processes()
    if node_rank == 0:
        with hold(run_folder(run)):  # before torch is imported; the run itself holds it again
            require_unfinished(run_folder(run))

    from grpo_core.loop import launch

    if processes is not None and processes.node_rank > 0:
        raise typer.Exit(launch.join(processes))
    change = partial(_changed, texts=set_, plugin_files=plugin) if set_ else None
    raise typer.Exit(
        launch.resume(run, allow_changes=allow_changes, processes=processes, oversubscribe=oversubscribe, change=change)
    )


def _changed(plan: LaunchPlan, *, texts: Sequence[str], plugin_files: Sequence[Path] | None) -> LaunchPlan:
    """The plan with other settings, resolved anew; it knows both commands that made it."""
    from grpo_core.cli.planning import gather, make_plan, settings_of

    changed, _ = make_plan(gather(None, {"set_": texts}, below=settings_of(plan)), plugin_files=plugin_files)
    commands = filter(None, [plan.command, shlex.join(["grpoctl", *sys.argv[1:]])])
    kept = {"processes": plan.processes, "per_machine": plan.per_machine}
    return changed.model_copy(update={"command": "\n".join(commands), **kept})

"""`grpoctl resume`: go on with a run that was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grpo_core.cli.common import Endpoint, NodeRank, Nodes, PerNode, processes_of

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("resume")(resume)


def resume(
    run: Annotated[Path, typer.Argument(help="A run's folder, or one of its checkpoints/step-…", metavar="RUN")],
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Go on although the dataset or a plugin's version changed.")
    ] = False,
    nproc_per_node: PerNode = 1,
    nnodes: Nodes = 1,
    node_rank: NodeRank = 0,
    rdzv_endpoint: Endpoint = None,
) -> None:
    """Go on with a run from its newest checkpoint; its numbers are those of an uninterrupted run."""
    from grpo_core.loop import launch

    processes = processes_of(nproc_per_node, nnodes, node_rank, rdzv_endpoint)
    if processes is not None and processes.node_rank > 0:
        raise typer.Exit(launch.start(processes, ["."]))  # rank 0, on machine 0, has the plan
    raise typer.Exit(launch.resume(run, allow_changes=allow_changes, processes=processes))

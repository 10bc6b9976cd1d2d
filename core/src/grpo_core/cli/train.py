"""`grpoctl train`: settings from a recipe and flags, resolved into a plan, and the run that it describes."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grpo_core.cli.common import Endpoint, NodeRank, Nodes, Oversubscribe, PerNode, processes_of
from grpo_core.cli.flags import takes_flags
from grpo_core.errors import Problem
from grpo_core.regular_files import path_fault, shown, unusual_kind

if TYPE_CHECKING:
    from grpo_core.recipe.layers import Layer

__all__ = ["register"]

_NAME_SIGNS = 60
_DEEPEST = "checkpoints/step-000001/trainer/model-00001-of-00001.safetensors.partial"
"""About as long as what is written below a run's folder."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("train")(train)


@takes_flags
def train(
    recipe: Annotated[
        str | None, typer.Option("--recipe", metavar="FILE|NAME", help="A recipe; flags and --set win over it.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Stop before the model is loaded, each quick reward called once; nothing is written."
        ),
    ] = False,
    plan_only: Annotated[
        bool,
        typer.Option("--plan-only", help="Write the run's folder and stop; torchrun or srun start its processes."),
    ] = False,
    nproc_per_node: PerNode = 1,
    nnodes: Nodes = 1,
    node_rank: NodeRank = 0,
    rdzv_endpoint: Endpoint = None,
    oversubscribe: Oversubscribe = False,
    **flags: Any,
) -> None:
    """Train a model with GRPO."""
    processes = processes_of(nproc_per_node, nnodes, node_rank, rdzv_endpoint, oversubscribe=oversubscribe)
    if processes is not None and processes.node_rank > 0:
        from grpo_core.loop.launch import join

        raise typer.Exit(join(processes))

    from grpo_core.cli.planning import gather, make_plan
    from grpo_core.recipe.existence import absent_files
    from grpo_core.recipe.layers import layer_of, merge

    name = _run_name(recipe, flags.get("model"))
    default = layer_of(("run", "directory"), f"runs/{name}-{time.strftime('%Y%m%d-%H%M%S')}", "default", base=Path())
    layer = merge(default, gather(recipe, flags))
    absent = [*absent_files(layer), *_unusable_folder(layer, may_be_used=dry_run)]
    plan, _ = make_plan(layer, plugin_files=flags.get("plugin"), problems=absent)
    plan = plan.model_copy(update={"command": shlex.join(["grpoctl", *sys.argv[1:]])})

    if dry_run:
        from grpo_core.trial.dry_run import dry_run as look

        raise typer.Exit(look(plan, processes, here=None if plan_only else processes))

    from grpo_core.loop.launch import launch

    raise typer.Exit(launch(plan, plan_only=plan_only, processes=processes))


def _run_name(recipe: str | None, model: str | None) -> str:
    """What the run is called where nobody says: by its recipe, else by its model."""
    if recipe is not None:
        last = recipe.rstrip("/").rpartition("/")[2]
        return Path(last).stem if last.endswith((".yaml", ".yml", ".json", ".toml")) else last
    return ((model or "run").rstrip("/").rpartition("/")[2] or "run")[:_NAME_SIGNS]


def _unusable_folder(layer: Layer, *, may_be_used: bool) -> list[Problem]:
    """Why the run cannot be written where it should be, or only, where it `may_be_used`, why nothing ever could be; the
    folder is made later."""
    chosen = layer.values["run"].get("directory") if isinstance(layer.values["run"], dict) else None
    message = _fault_of_folder(chosen, may_be_used) if isinstance(chosen, str) else None
    if message is None:
        return []
    return [Problem(path="run.directory", message=message, origin=layer.origin_of(("run", "directory")))]


def _fault_of_folder(chosen: str, may_be_used: bool) -> str | None:
    from grpo_core.loop.unstarted import refusal

    if not chosen.strip():
        return "is empty; name a folder, or leave it out for one in runs/"
    path = Path(os.path.expanduser(chosen))
    if fault := path_fault(str(path.absolute() / _DEEPEST)):
        return f"{shown(chosen)} can be no folder of a run: {fault}"
    if os.path.lexists(path) and not path.exists():
        return f"'{chosen}' is a symbolic link that leads nowhere; choose another --output"
    if path.exists() and not path.is_dir():
        return f"'{chosen}' is {unusual_kind(path) or 'a file'}; choose another --output"
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not there.is_dir():
        return f"'{chosen}' cannot be made: {there} is {unusual_kind(there) or 'a file'}; choose another --output"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"'{chosen}' cannot be made: {there} is not yours to write in; choose another --output"
    reason = None if may_be_used else refusal(path)
    return None if reason is None else f"'{chosen}' {reason}"

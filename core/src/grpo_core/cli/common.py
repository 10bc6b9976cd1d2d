"""What several commands share: their common flags, and loading the plugins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grpo_core.errors import PluginError, UsageError

if TYPE_CHECKING:
    from grpo_core.plugins.host import PluginHost
    from grpo_core.ranks.place import Processes

__all__ = [
    "Endpoint",
    "JsonFlag",
    "NodeRank",
    "Nodes",
    "Oversubscribe",
    "PerNode",
    "PerNodeOrBefore",
    "PluginFiles",
    "load_plugins",
    "processes_of",
]

PluginFiles = Annotated[
    list[Path] | None,
    typer.Option("--plugin", metavar="FILE", help="A Python file with hooks, loaded as a plugin. Repeatable."),
]
"""Give the parameter the default None."""
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]
"""Give the parameter the default False."""


_PROCESSES = "Several processes"

PerNode = Annotated[
    int,
    typer.Option("--nproc-per-node", metavar="N", min=1, help="Processes here: one a GPU.", rich_help_panel=_PROCESSES),
]
"""Give the parameter the default 1."""
PerNodeOrBefore = Annotated[
    int | None,
    typer.Option(
        "--nproc-per-node",
        metavar="N",
        min=1,
        help="Processes here. Default: as many as before.",
        rich_help_panel=_PROCESSES,
        show_default=False,
    ),
]
"""Give the parameter the default None."""
Nodes = Annotated[
    int, typer.Option("--nnodes", metavar="N", min=1, help="Machines; start it on each.", rich_help_panel=_PROCESSES)
]
"""Give the parameter the default 1."""
NodeRank = Annotated[
    int, typer.Option("--node-rank", metavar="K", min=0, help="Which machine this is.", rich_help_panel=_PROCESSES)
]
"""Give the parameter the default 0."""
Endpoint = Annotated[
    str | None,
    typer.Option("--rdzv-endpoint", metavar="HOST:PORT", help="Of machine 0.", rich_help_panel=_PROCESSES),
]
"""Give the parameter the default None."""
Oversubscribe = Annotated[
    bool,
    typer.Option(
        "--oversubscribe", help="More processes than there are cores, or memory, for.", rich_help_panel=_PROCESSES
    ),
]
"""Give the parameter the default False."""


def processes_of(
    per_node: int, nodes: int, node_rank: int, endpoint: str | None, *, oversubscribe: bool
) -> Processes | None:
    """The processes that the flags ask for; None: this one. Raises `UsageError` for flags that do not go together."""
    from grpo_core.ranks.place import Processes

    if node_rank >= nodes:
        raise UsageError(
            f"--node-rank is {node_rank} and --nnodes {nodes}: machines are numbered from 0 to {nodes - 1}",
            hint="the machine that keeps the run's folder is 0",
        )
    processes = Processes(
        per_node=per_node, nodes=nodes, node_rank=node_rank, endpoint=endpoint, oversubscribe=oversubscribe
    )
    if nodes > 1:
        processes.meeting_point()
    return processes if processes.several else None


def load_plugins(
    files: Sequence[Path] | None = None,
    *,
    disable: Sequence[str] = (),
    require: Sequence[str] = (),
    warn: bool = True,
    lenient: bool = False,
) -> PluginHost:
    """Load all plugins and print one line on stderr for each that is not sound; a command calls this once.

    `files` are those of `--plugin`, `disable` and `require` those of the recipe. Raises as `PluginHost.load`; and,
    unless `lenient`, `PluginError` for a file that is not sound: it was named, so it is needed.
    """
    from grpo_core.plugins.host import PluginHost, warn_quarantined

    host = PluginHost.load(disable=disable, files=files or (), require=require)
    named = {file.name: file for file in files or ()}
    broken = next((plugin for plugin in host.quarantined if plugin.distribution in named), None)
    if broken is not None and not lenient:
        details = f"grpoctl plugins doctor {broken.distribution} --plugin {named[broken.distribution]}"
        raise PluginError(broken.line, hint="\n".join(filter(None, [broken.hint, f"Details: {details}"])))
    if warn:
        warn_quarantined(host)
    return host

"""What several commands share: their common flags, and loading the plugins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from grpo_core.plugins.host import PluginHost

__all__ = ["JsonFlag", "PluginFiles", "load_plugins"]

PluginFiles = Annotated[
    list[Path] | None,
    typer.Option("--plugin", metavar="FILE", help="A Python file with hooks, loaded as a plugin. Repeatable."),
]
"""Give the parameter the default None."""
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]
"""Give the parameter the default False."""


def load_plugins(
    files: Sequence[Path] | None = None,
    *,
    disable: Sequence[str] = (),
    require: Sequence[str] = (),
    warn: bool = True,
) -> PluginHost:
    """Load all plugins and print one line on stderr for each that is not sound; a command calls this once.

    `files` are those of `--plugin`, `disable` and `require` those of the recipe. Raises as `PluginHost.load`.
    """
    from grpo_core.plugins.host import PluginHost, warn_quarantined

    host = PluginHost.load(disable=disable, files=files or (), require=require)
    if warn:
        warn_quarantined(host)
    return host

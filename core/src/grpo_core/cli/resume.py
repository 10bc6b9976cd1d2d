"""`grpoctl resume`: go on with a run that was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("resume")(resume)


def resume(
    run: Annotated[Path, typer.Argument(help="A run's folder, or one of its checkpoints/step-…", metavar="RUN")],
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Go on although the dataset or a plugin's version changed.")
    ] = False,
) -> None:
    """Go on with a run from its newest checkpoint; its numbers are those of an uninterrupted run."""
    from grpo_core.loop import launch

    raise typer.Exit(launch.resume(run, allow_changes=allow_changes))

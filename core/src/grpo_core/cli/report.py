"""`grpoctl report`: one HTML file about one or several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grpo_core.cli.console import stderr

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(report)


def report(
    runs: Annotated[list[Path], typer.Argument(help="The folder of a run; several are drawn together.", metavar="RUN")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write it. Default: report.html in the run's folder; for several runs, in this folder.",
        ),
    ] = None,
) -> None:
    """Write report.html: curves, probes, completions, evaluation and settings, in one file that opens offline.

    Works while a run is going on, too.
    """
    from grpo_core.report.write import write_report

    target = output or (runs[0] / "report.html" if len(runs) == 1 else Path("report.html"))
    for run in write_report(runs, target):
        for note in run.notes:
            stderr.print(f"note: {run.name}: {note}", markup=False)
    typer.echo(f"{target} ({target.stat().st_size / 1e6:.1f} MB)")

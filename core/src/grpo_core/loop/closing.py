"""What a run leaves and says when it is over: report.html beside its metrics, as `grpoctl report` writes it, or how to
go on."""

from __future__ import annotations

import logging
from pathlib import Path

from grpo_core.errors import GrpoError
from grpo_core.loop.checkpoint import newest_checkpoint
from grpo_core.report.write import write_report

__all__ = ["close_with_report", "way_on"]

logger = logging.getLogger("grpo_core")


def close_with_report(run_dir: Path) -> None:
    """Write report.html into a run's folder and say where it is; what goes wrong is a warning: the run is done."""
    output = run_dir / "report.html"
    try:
        write_report([run_dir], output)
    except Exception as error:  # noqa: BLE001  a fault of the report must not fail a run that trained to its end
        reason = error.message if isinstance(error, GrpoError) else f"{type(error).__name__}: {error}"
        logger.warning("the report could not be written: %s; `grpoctl report %s` tries again", reason, run_dir)
        return
    print(f"report: {output}", flush=True)


def way_on(run_dir: Path) -> str | None:
    """How to go on with a run that was ended; None: it has no checkpoint."""
    newest = newest_checkpoint(run_dir)
    return None if newest is None else f"`grpoctl resume {run_dir}` goes on from {newest.name}"

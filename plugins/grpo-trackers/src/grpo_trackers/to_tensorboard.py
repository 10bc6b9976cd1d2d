"""TensorBoard: event files in the run's folder. Nothing leaves the machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

from grpo_core.api import BuildContext, PluginError, RunOutcome, RunStarted, StepReport, hookimpl
from grpo_trackers.options import TensorBoardOptions
from grpo_trackers.shown import COLUMNS, completion_rows, flat, folder_of, numbers_of, settings_of

__all__ = ["TensorBoard", "make"]

_MOST_SHOWN = 4
"""Completions of a step; TensorBoard shows text as one long page."""


class TensorBoard:
    """Writes one run. After a resume the steps that are done again take the place of those before."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._writer: SummaryWriter | None = None

    @hookimpl
    def grpo_run_started(self, started: RunStarted) -> None:
        """Open the event files, and show the settings."""
        self._writer = SummaryWriter(str(self._directory), purge_step=started.first_step)
        if started.first_step == 1:
            settings = dict(flat(settings_of(started)))
            self._writer.add_text("settings", _table(("setting", "value"), map(list, settings.items())))
        for name, value in (started.evaluation.metrics if started.evaluation else {}).items():
            self._writer.add_scalar(name, value, 0)

    @hookimpl
    def grpo_step_finished(self, report: StepReport) -> None:
        """Write the numbers, and a few completions where there are any."""
        assert self._writer is not None
        for name, value in numbers_of(report).items():
            self._writer.add_scalar(name, value, report.step)
        rows = completion_rows(report)[:_MOST_SHOWN]
        if rows:
            self._writer.add_text("completions", _table(COLUMNS[1:], (row[1:] for row in rows)), report.step)
        self._writer.flush()

    @hookimpl
    def grpo_run_finished(self, outcome: RunOutcome) -> None:
        """Close the files."""
        if self._writer is not None:
            self._writer.add_text("outcome", f"{outcome.status} after {outcome.steps} steps", outcome.steps)
            self._writer.close()


def make(options: TensorBoardOptions, context: BuildContext) -> TensorBoard:
    """A tracker that writes event files."""
    if options.directory is not None:
        return TensorBoard(Path(options.directory).expanduser())
    if context.run_dir is None:
        raise PluginError("TensorBoard needs a run's folder or the option `directory`")
    return TensorBoard(folder_of(context.run_dir) / "tensorboard")


def _table(columns: tuple[str, ...], rows: Iterator[list[object]]) -> str:
    """Markdown, as TensorBoard renders text."""
    lines = [" | ".join(columns), " | ".join("---" for _ in columns)]
    return "\n".join([*lines, *(" | ".join(map(_cell, row)) for row in rows)])


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text.replace("|", "\\|").replace("\n", "<br>")

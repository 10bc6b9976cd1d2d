"""Trackio: a local database, or a Hugging Face Space."""

from __future__ import annotations

import trackio
from trackio.run import Run

from grpo_core.api import BuildContext, RunOutcome, RunStarted, StepReport, hookimpl
from grpo_trackers.options import TrackioOptions
from grpo_trackers.shown import COLUMNS, completion_rows, numbers_of, read_note, settings_of, write_note

__all__ = ["Trackio", "make"]


class Trackio:
    """Shows one run; its name is kept in the run's folder, so that a resumed run goes on in the same place."""

    def __init__(self, options: TrackioOptions) -> None:
        self._options = options
        self._run: Run | None = None

    @hookimpl
    def grpo_run_started(self, started: RunStarted) -> None:
        """Begin, or go on with, the run."""
        note = read_note(started.run_dir, "trackio")
        project = note.get("project") or self._options.project
        name = note.get("name") or self._options.name or started.run_dir.resolve().name
        self._run = trackio.init(
            project=project,
            name=name,
            group=self._options.group,
            space_id=self._options.space_id,
            config=settings_of(started),
            resume="allow" if note else "never",
            embed=False,
        )
        write_note(started.run_dir, "trackio", project=project, name=self._run.name)
        if started.evaluation is not None:
            self._run.log(dict(started.evaluation.metrics), step=0)

    @hookimpl
    def grpo_step_finished(self, report: StepReport) -> None:
        """Store the numbers, and a table of completions where there are any."""
        assert self._run is not None
        sent: dict[str, object] = dict(numbers_of(report))
        rows = completion_rows(report)
        if rows:
            sent["completions"] = trackio.Table(columns=list(COLUMNS), data=rows)
        self._run.log(sent, step=report.step)

    @hookimpl
    def grpo_run_finished(self, outcome: RunOutcome) -> None:
        """Bring what is left to the database."""
        if self._run is not None:
            self._run.finish()  # type: ignore[no-untyped-call]


def make(options: TrackioOptions, context: BuildContext) -> Trackio:
    """A tracker in Trackio."""
    return Trackio(options)

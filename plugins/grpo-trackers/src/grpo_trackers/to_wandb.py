"""Weights & Biases. The key comes from WANDB_API_KEY (or `wandb login`), everything else from options or wandb's own
environment variables; WANDB_MODE=offline writes to the run's folder only."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path

import wandb

from grpo_core.api import BuildContext, RunOutcome, RunStarted, StepReport, hookimpl
from grpo_trackers.options import WandbOptions
from grpo_trackers.shown import (
    COLUMNS,
    completion_rows,
    folder_of,
    numbers_of,
    read_note,
    settings_of,
    write_note,
)

__all__ = ["Wandb", "make"]

_LOGIN_TIMEOUT_S = 60
_EXIT_CODES = {"finished": 0, "failed": 4, "interrupted": 130}


class Wandb:
    """Shows one run; its id is kept in the run's folder, so that a resumed run goes on in the same place.

    So is the number of rows sent: wandb numbers them itself, offline from 0 in each process, and of two rows with one
    number it keeps one.
    """

    def __init__(self, options: WandbOptions) -> None:
        self._options = options
        self._run: wandb.Run | None = None
        self._run_dir = Path()
        self._sent = 0

    @hookimpl
    def grpo_run_started(self, started: RunStarted) -> None:
        """Begin, or go on with, the run at wandb."""
        note = read_note(started.run_dir, "wandb")
        run_id = note.get("id") or uuid.uuid4().hex[:12]
        options = self._options
        self._run = wandb.init(
            id=run_id,
            resume="allow",
            project=note.get("project") or options.project or os.environ.get("WANDB_PROJECT") or "grpo",
            entity=options.entity,
            name=options.name or os.environ.get("WANDB_NAME") or started.run_dir.resolve().name,
            group=options.group,
            tags=list(options.tags) or None,
            mode=options.mode,
            dir=os.environ.get("WANDB_DIR") or str(folder_of(started.run_dir)),
            config=settings_of(started),
            # The console's live view would be sent line by line; a forgotten key must not hold up the run for ever.
            settings=wandb.Settings(console="off", login_timeout=_LOGIN_TIMEOUT_S),
        )
        self._run_dir, self._sent = started.run_dir, int(note.get("sent", "0"))
        self._run.define_metric("step")
        self._run.define_metric("*", step_metric="step")
        self._keep_note()
        if started.evaluation is not None:
            self._send({"step": 0, **started.evaluation.metrics})

    @hookimpl
    def grpo_step_finished(self, report: StepReport) -> None:
        """Send the numbers, and a table of completions where there are any."""
        sent: dict[str, object] = {"step": report.step, **numbers_of(report)}
        rows = completion_rows(report)
        if rows:
            sent["completions"] = wandb.Table(columns=list(COLUMNS), data=rows)
        self._send(sent)

    @hookimpl
    def grpo_run_finished(self, outcome: RunOutcome) -> None:
        """Say how it ended; an interrupted run can be resumed."""
        if self._run is not None:
            self._run.summary["status"] = outcome.status
            self._run.finish(exit_code=_EXIT_CODES[outcome.status])

    def _send(self, row: Mapping[str, object]) -> None:
        assert self._run is not None
        self._run.log(dict(row), step=self._sent)
        self._sent += 1
        self._keep_note()

    def _keep_note(self) -> None:
        assert self._run is not None
        write_note(self._run_dir, "wandb", id=self._run.id, project=self._run.project, sent=str(self._sent))


def make(options: WandbOptions, context: BuildContext) -> Wandb:
    """A tracker at Weights & Biases."""
    return Wandb(options)

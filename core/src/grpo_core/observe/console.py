"""The console: a live view on a terminal, plain lines elsewhere. An observer like any plugin's.

It shows progress with the time left, the numbers that matter, and a completion now and then; everything else is in
the run's files.
"""

from __future__ import annotations

import time

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from grpo_core.observe.summary import closing_lines, evaluation_line, seconds_text, step_fields
from grpo_core.observe.window import Window, window_of
from grpo_core.types import RunOutcome, RunStarted, ScoredGroup, StepReport

__all__ = ["ConsoleView", "view"]

_SHOWN_CHARACTERS = 1200


class ConsoleView:
    """Shows one run."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._live: Live | None = None
        self._started = 0.0
        self._first_step = 1
        self._window = Window(every_steps=1, show_every_steps=0, first_step=1)

    def run_started(self, started: RunStarted) -> None:
        """Open the view."""
        self._started = time.monotonic()
        self._first_step = started.first_step
        self._window = window_of(started)
        if started.evaluation is not None:
            self._console.print(f"before training: {evaluation_line(started.evaluation.metrics)}")
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("step"),
                MofNCompleteColumn(),
                BarColumn(bar_width=None),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
                console=self._console,
                expand=True,
            )
            self._task = self._bar.add_task("", total=started.total_steps, completed=started.first_step - 1, left="")
            self._live = Live(self._bar, console=self._console, refresh_per_second=4)
            self._live.start()

    def step_finished(self, report: StepReport) -> None:
        """Show a step."""
        left = self._time_left(report)
        if self._live is not None:
            self._bar.update(self._task, completed=report.step, left=f"{left} left")
        due = self._window.add(report)
        if due is not None:
            self._show(due, left)

    def _show(self, report: StepReport, left: str) -> None:
        if self._live is not None:
            self._live.update(Group(self._bar, _table(report)))
        else:
            fields = "  ".join(f"{label} {text}" for label, text in step_fields(report))
            self._console.print(f"step {report.step}/{report.total_steps}  {fields}  left {left}", soft_wrap=True)
        if report.evaluation is not None:
            self._console.print(f"step {report.step}: {evaluation_line(report.evaluation.metrics)}", soft_wrap=True)
        if report.groups:
            self._console.print(_completion_panel(report))

    def run_finished(self, outcome: RunOutcome) -> None:
        """Close the view and say how it went."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        for line in closing_lines(outcome):
            self._console.print(line, soft_wrap=True, style="bold" if "held-out" in line else None)

    def _time_left(self, report: StepReport) -> str:
        done = report.step - self._first_step + 1
        per_step_s = (time.monotonic() - self._started) / done
        return seconds_text(per_step_s * (report.total_steps - report.step))


def _table(report: StepReport) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    fields = step_fields(report)
    for label, _ in fields:
        table.add_column(label, justify="right", style="bold", header_style="dim")
    table.add_row(*(text for _, text in fields))
    return table


def _completion_panel(report: StepReport) -> RenderableType:
    """The first group's best completion: what the model does when it does well."""
    scored = report.groups[0]
    best = max(range(len(scored.totals)), key=lambda index: scored.totals[index] or 0.0)
    text = scored.group.completions[best].text
    shown = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + " …"
    prompt = scored.group.sample.messages[-1].content
    body = Group(Text(prompt[-_SHOWN_CHARACTERS:], style="dim"), Text(shown))
    return Panel(body, title=f"step {report.step}, sample {scored.group.sample.id}", subtitle=_scores(scored, best))


def _scores(scored: ScoredGroup, index: int) -> str:
    outcomes = {name: values[index] for name, values in scored.outcomes.items()}
    return "  ".join(f"{name} {score:.2f}" for name, score in outcomes.items() if isinstance(score, float))


view = ConsoleView()
"""The one this process shows its run on."""

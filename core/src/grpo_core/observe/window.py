"""Fewer reports: one every `run.logging_steps` steps, with the means since the one before.

For what a person looks at, the console and trackers. metrics.jsonl and other observers get every step.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from grpo_core.types import RunStarted, StepReport

__all__ = ["Window", "merge_steps", "window_of"]

_LAST = frozenset({"epoch", "trainer/learning_rate"})
_LARGEST = frozenset({"health/collapse"})


class Window:
    """Gathers steps until a report is due: every so many steps, with each evaluation, and with the last step."""

    def __init__(self, *, every_steps: int, show_every_steps: int, first_step: int) -> None:
        self._every_steps = every_steps
        self._show_every_steps = show_every_steps
        self._shown_step = first_step - 1
        self._rows: list[Mapping[str, float | None]] = []

    def add(self, report: StepReport) -> StepReport | None:
        """The report that is due after this step, or None.

        Its metrics are merged; it has the step's groups only when completions are to be shown: when the steps since
        they last were include a multiple of `show_every_steps`.
        """
        self._rows.append(report.metrics)
        due = report.step % self._every_steps == 0 or report.step == report.total_steps
        if not due and report.evaluation is None:
            return None
        metrics, self._rows = merge_steps(self._rows), []
        if self._shows(report.step):
            self._shown_step = report.step
            return replace(report, metrics=metrics)
        return replace(report, metrics=metrics, groups=(), advantages=())

    def _shows(self, step: int) -> bool:
        every = self._show_every_steps
        return every > 0 and step // every > self._shown_step // every


def window_of(started: RunStarted) -> Window:
    """The window that a run's settings ask for."""
    recipe = started.plan.get("recipe")
    run = recipe.get("run", {}) if isinstance(recipe, dict) else {}
    return Window(
        every_steps=int(run.get("logging_steps", 1)),
        show_every_steps=int(run.get("show_completion_every_steps", 0)),
        first_step=started.first_step,
    )


def merge_steps(rows: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """One value a name: the largest of `_max`, the smallest of `_min`, the last epoch and learning rate, the mean of
    all else. Steps in which a value is None or missing are left out; None when it is so in all of them."""
    names = {name: None for row in rows for name in row}
    known = {name: [value for row in rows if (value := row.get(name)) is not None] for name in names}
    return {name: _merged(name, values) if values else None for name, values in known.items()}


def _merged(name: str, values: Sequence[float]) -> float:
    if name in _LAST:
        return values[-1]
    if name.endswith("_max") or name in _LARGEST:
        return max(values)
    return min(values) if name.endswith("_min") else statistics.fmean(values)

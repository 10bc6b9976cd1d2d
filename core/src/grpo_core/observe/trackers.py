"""Trackers: observers that the recipe names, told of a run at its logging interval.

Place in the flow: the loop on rank 0 adds those of the plan to its observers, which see to it that one that fails is
reported once and stops nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pluggy

from grpo_core.errors import PluginError
from grpo_core.observe.window import Window, window_of
from grpo_core.plugins import hookspecs
from grpo_core.plugins.hookspecs import hookimpl
from grpo_core.plugins.observers import Observers
from grpo_core.plugins.targets import build_target
from grpo_core.recipe.plan import PlannedComponent
from grpo_core.types import BuildContext, RunOutcome, RunStarted, StepReport

__all__ = ["add_trackers"]


def add_trackers(observers: Observers, trackers: Iterable[PlannedComponent], context: BuildContext) -> None:
    """Build each tracker and let it watch; one that cannot be built is reported, and the others watch."""
    for tracker in trackers:
        observers.try_add(tracker.name, partial(_build, tracker, context))


def _build(tracker: PlannedComponent, context: BuildContext) -> object:
    return _Thinned(tracker, build_target(tracker.target, tracker.options_model, tracker.options, context))


class _Thinned:
    """Stands before a tracker and lets through one report every `run.logging_steps` steps."""

    def __init__(self, tracker: PlannedComponent, target: object) -> None:
        self._alone = pluggy.PluginManager(hookspecs.hookspec.project_name)
        self._alone.add_hookspecs(hookspecs)
        self._alone.register(target)
        self._window: Window | None = None
        if not self._alone.get_hookcallers(target):
            raise PluginError(f"'{tracker.target}' gave an object without an observer hook")

    @hookimpl
    def grpo_run_started(self, started: RunStarted) -> None:
        self._window = window_of(started)
        self._alone.hook.grpo_run_started(started=started)

    @hookimpl
    def grpo_step_finished(self, report: StepReport) -> None:
        due = report if self._window is None else self._window.add(report)
        if due is not None:
            self._alone.hook.grpo_step_finished(report=due)

    @hookimpl
    def grpo_run_finished(self, outcome: RunOutcome) -> None:
        self._alone.hook.grpo_run_finished(outcome=outcome)

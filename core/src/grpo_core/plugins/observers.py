"""Plugins that watch a run: their hooks are called one plugin at a time, and none of them can stop it.

The loop on rank 0 loads them from its plan, by module; there is no discovery here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

import pluggy

from grpo_core.errors import GrpoError
from grpo_core.plugins import hookspecs
from grpo_core.plugins.faults import describe
from grpo_core.plugins.targets import load_module
from grpo_core.types.report import RunOutcome, RunStarted, StepReport

__all__ = ["Observers", "load_observers"]


class Observers:
    """The plugins that watch this run. One that raises is reported once and switched off for the rest of it."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._watching: list[tuple[str, pluggy.PluginManager]] = []
        self._report = report

    def add(self, distribution: str, module: object) -> None:
        """Let the hooks of a plugin's module, or of an object, watch."""
        alone = pluggy.PluginManager(hookspecs.hookspec.project_name)
        alone.add_hookspecs(hookspecs)
        alone.register(module)
        self._watching.append((distribution, alone))

    def try_add(self, name: str, build: Callable[[], object]) -> None:
        """Let what `build` gives watch; report it when it cannot be built."""
        try:
            self.add(name, build())
        except (GrpoError, pluggy.PluginValidationError, ValueError) as error:
            self._report(f"{name} does not watch this run: {error}")

    def run_started(self, started: RunStarted) -> None:
        """The run begins or goes on."""
        self._call("grpo_run_started", started=started)

    def step_finished(self, report: StepReport) -> None:
        """A step is done and recorded."""
        self._call("grpo_step_finished", report=report)

    def run_finished(self, outcome: RunOutcome) -> None:
        """The run ended, well or not."""
        self._call("grpo_run_finished", outcome=outcome)

    def _call(self, hook: str, **values: object) -> None:
        for watcher in tuple(self._watching):
            distribution, alone = watcher
            try:
                getattr(alone.hook, hook)(**values)
            except (Exception, SystemExit) as error:  # noqa: BLE001  an observer never stops a run
                self._watching.remove(watcher)
                self._report(f"{distribution} no longer watches this run: {hook} failed with {describe(error)}")


def load_observers(modules: Iterable[tuple[str, str]], *, report: Callable[[str], None] | None = None) -> Observers:
    """Import the observers of a plan.

    Args:
        modules: (distribution, `pkg.plugin` or `/absolute/file.py`) of each.
        report: gets one line about each that fails, now or later; default: prints it to stderr.
    """
    observers = Observers(report or _print_to_stderr)
    for distribution, place in modules:
        observers.try_add(distribution, partial(load_module, place))
    return observers


def _print_to_stderr(line: str) -> None:
    with suppress(OSError):  # its terminal is gone
        print(line, file=sys.stderr)

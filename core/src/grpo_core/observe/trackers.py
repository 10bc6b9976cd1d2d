"""Trackers: observers that the recipe names, told of a run at its logging interval.

Place in the flow: the loop on rank 0 adds those of the plan to its observers, which see to it that one that fails is
reported once and stops nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import partial

from grpo_core.errors import PluginError
from grpo_core.observe.window import Window, window_of
from grpo_core.plugins import hookspecs
from grpo_core.plugins.hookspecs import hookimpl
from grpo_core.plugins.observers import Observers
from grpo_core.plugins.rules import OBSERVERS
from grpo_core.plugins.targets import build_by_factory
from grpo_core.recipe.plan import PlannedComponent
from grpo_core.types import BuildContext, RunOutcome, RunStarted, StepReport

__all__ = ["add_trackers"]


def add_trackers(observers: Observers, trackers: Iterable[PlannedComponent], context: BuildContext) -> None:
    """Build each tracker and let it watch; one that cannot be built is reported, and the others watch."""
    for tracker in trackers:
        observers.try_add(tracker.name, partial(_build, tracker, context))


def _build(tracker: PlannedComponent, context: BuildContext) -> object:
    built = build_by_factory(tracker.target, tracker.options_model, tracker.options, context)
    return _Thinned(_hooks_of(built, tracker.name))


class _Thinned:
    """Stands before a tracker and lets through one report every `run.logging_steps` steps."""

    def __init__(self, hooks: Mapping[str, Callable[..., object]]) -> None:
        self._hooks = hooks
        self._window: Window | None = None

    @hookimpl
    def grpo_run_started(self, started: RunStarted) -> None:
        self._window = window_of(started)
        self._call("grpo_run_started", started=started)

    @hookimpl
    def grpo_step_finished(self, report: StepReport) -> None:
        due = report if self._window is None else self._window.add(report)
        if due is not None:
            self._call("grpo_step_finished", report=due)

    @hookimpl
    def grpo_run_finished(self, outcome: RunOutcome) -> None:
        self._call("grpo_run_finished", outcome=outcome)

    def _call(self, hook: str, **values: object) -> None:
        """Call a hook with those of the values that it takes."""
        method = self._hooks.get(hook)
        if method is not None:
            taken = inspect.signature(method).parameters.values()
            takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken)
            names = {parameter.name for parameter in taken}
            method(**{name: value for name, value in values.items() if takes_all or name in names})


def _hooks_of(built: object, name: str) -> dict[str, Callable[..., object]]:
    """The observer hooks that an object has as methods, decorated or not. Raises `PluginError` when it has none, or one
    that could not be called."""
    found = {}
    for method in (method for method in dir(built) if method.startswith("grpo_")):
        if method not in OBSERVERS:
            near = get_close_matches(method, OBSERVERS, n=1)
            raise PluginError(
                f"the tracker '{name}' has a method {method}, which is no observer hook",
                hint=f"Did you mean '{near[0]}'?" if near else _KNOWN,
            )
        found[method] = getattr(built, method)
        fault = _fault_of(found[method], tuple(inspect.signature(getattr(hookspecs, method)).parameters))
        if fault is not None:
            raise PluginError(f"the tracker '{name}': its method {method} {fault}")
    if not found:
        what = "a class" if isinstance(built, type) else f"a {type(built).__name__}"
        raise PluginError(f"the factory of the tracker '{name}' gave {what} without an observer hook", hint=_KNOWN)
    return found


_KNOWN = f"A tracker has methods {', '.join(OBSERVERS)}: any of them."


def _fault_of(method: object, given: tuple[str, ...]) -> str | None:
    if not callable(method):
        return "is no method"
    if inspect.iscoroutinefunction(method):
        return "is async, and nothing would await it; write it as a plain method"
    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError) as error:
        return f"does not say what it takes ({error})"
    for parameter in parameters:
        is_rest = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        if not is_rest and parameter.name not in given and parameter.default is parameter.empty:
            return f"takes '{parameter.name}', but is given: {', '.join(given)}"
        if parameter.kind is parameter.POSITIONAL_ONLY:
            return f"takes '{parameter.name}' by position, but arguments are given by name"
    return None

"""Prove one plugin alone: import it, check its hooks, drain its registration hooks, check what they describe.

A plugin is admitted whole or not at all, and nothing it does wrong gets out, `sys.exit` at import included; only
Ctrl-C passes. pluggy's own entry-point loader stops at the first bad plugin, so it is not used.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from itertools import islice
from types import ModuleType

import pluggy

from grpo_core.errors import BrokenReference
from grpo_core.plugins import hookspecs
from grpo_core.plugins.faults import describe
from grpo_core.plugins.rules import (
    HEALTH,
    OBSERVERS,
    REGISTRATION,
    RuleError,
    Spec,
    check_hooks,
    check_spec,
    check_unique,
    line_of,
)
from grpo_core.plugins.targets import load_module
from grpo_core.plugins.verdicts import Admitted, Candidate, Quarantined, Stage

__all__ = ["prove"]

_MOST_SPECS = 1000


def prove(candidate: Candidate) -> Admitted | Quarantined:
    """Admit a plugin, or say why not."""
    stage: Stage = "import"
    specs: list[Spec] = []
    observers: list[str] = []
    health: list[str] = []
    try:
        # What a plugin prints must not end up in the middle of `--json`.
        with contextlib.redirect_stdout(sys.stderr):
            for place in candidate.modules:
                stage = "import"
                module = _import(place)
                stage = "hooks"
                hooks = check_hooks(module)
                stage = "register"
                specs += _register(module, hooks)
                observers += [place] if set(hooks) & set(OBSERVERS) else []
                health += [place] if HEALTH in hooks else []
            check_unique(specs)
    except (Exception, SystemExit) as error:  # noqa: BLE001  foreign code may raise anything
        return _quarantine(candidate, stage, error)
    return Admitted(
        distribution=candidate.distribution,
        version=candidate.version,
        specs=tuple(specs),
        modules=candidate.modules,
        observers=tuple(observers),
        health=tuple(health),
    )


def _import(place: str) -> ModuleType:
    if ":" in place:
        raise RuleError(f"its entry point names '{place}'", hint=f"Name the module: '{place.partition(':')[0]}'.")
    try:
        return load_module(place)
    except BrokenReference as error:
        # The plugin's own exception is the reason; that an import failed goes without saying.
        raise error.__cause__ or error from None


def _register(module: ModuleType, hooks: Iterable[str]) -> list[Spec]:
    scratch = pluggy.PluginManager(hookspecs.hookspec.project_name)
    scratch.add_hookspecs(hookspecs)
    scratch.register(module)
    scratch.check_pending()
    specs: list[Spec] = []
    for hook in hooks:
        if hook in REGISTRATION:
            try:
                specs += [check_spec(item, hook) for item in _drain(getattr(scratch.hook, hook)(), hook)]
            except RuleError as error:
                error.where = error.where or line_of(getattr(module, hook))
                raise
    return specs


def _drain(results: list[object], hook: str) -> list[object]:
    if not results:  # pluggy leaves out a None
        raise RuleError(f"{hook} returned None", hint="Yield each spec, or return a list of them.")
    (result,) = results
    if not isinstance(result, Iterable):
        hint = "Yield each spec, or return a list of them."
        raise RuleError(f"{hook} returned a {type(result).__name__}, not several specs", hint=hint)
    drained = list(islice(result, _MOST_SPECS + 1))
    if len(drained) > _MOST_SPECS:
        raise RuleError(f"{hook} gave more than {_MOST_SPECS} specs", hint="Does it ever end?")
    return drained


def _quarantine(candidate: Candidate, stage: Stage, error: BaseException) -> Quarantined:
    if isinstance(error, RuleError):
        reason, where, hint, trace = error.reason, error.where, error.hint, None
    else:
        fault = describe(error)
        reason, where, hint, trace = fault.what, fault.where, _advice(error), fault.traceback
    return Quarantined(
        distribution=candidate.distribution,
        version=candidate.version,
        stage=stage,
        reason=reason,
        where=where,
        hint=hint,
        traceback=trace,
    )


def _advice(error: BaseException) -> str | None:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"Install what it needs: the module '{error.name}' is not there."
    if isinstance(error, SystemExit):
        return "A plugin's module must only define its hooks."
    return None

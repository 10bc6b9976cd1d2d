"""The rules for what a plugin's module and its specs must look like; `airlock` applies them.

Each function raises `RuleError` at the first thing that is wrong. Nothing here imports a target: that a target's text
is well formed is all that can be said while the tool starts.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import PurePosixPath
from types import ModuleType
from typing import get_args

from packaging.requirements import InvalidRequirement, Requirement

from grpo_core.plugins import hookspecs
from grpo_core.plugins.faults import short_path
from grpo_core.plugins.specs import (
    ComponentSpec,
    DatasetSpec,
    RecipeSpec,
    RewardSpec,
    RolloutSpec,
    Scope,
    TrackerSpec,
    TrainerSpec,
)
from grpo_core.plugins.targets import is_target

__all__ = [
    "HEALTH",
    "OBSERVERS",
    "REGISTRATION",
    "RuleError",
    "Spec",
    "check_hooks",
    "check_spec",
    "check_unique",
    "line_of",
]

Spec = ComponentSpec | RecipeSpec

REGISTRATION: Mapping[str, type[Spec]] = {
    "grpo_dataset_preprocessors": DatasetSpec,
    "grpo_reward_functions": RewardSpec,
    "grpo_rollout_backends": RolloutSpec,
    "grpo_trainer_backends": TrainerSpec,
    "grpo_trackers": TrackerSpec,
    "grpo_recipes": RecipeSpec,
}
"""Registration hook -> the spec it describes components with."""
OBSERVERS = ("grpo_run_started", "grpo_step_finished", "grpo_run_finished")
"""Hooks that watch a run."""
HEALTH = "grpo_health"
"""The hook that `grpoctl plugins doctor` calls."""

_HOOKS = (*REGISTRATION, *OBSERVERS, HEALTH)
_MARK = f"{hookspecs.hookimpl.project_name}_impl"
"""The attribute by which pluggy knows a decorated function."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_RECIPE_NAME = re.compile(r"[a-z][a-z0-9._-]*")
_RECIPE_SUFFIXES = (".yaml", ".yml", ".toml")
_TEXTS = ("requires", "aliases", "hub_ids", "tasks")


class RuleError(Exception):
    """A rule is broken: what, where, and what to do."""

    def __init__(self, reason: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.where = where
        self.hint = hint


def check_hooks(module: ModuleType) -> tuple[str, ...]:
    """The hooks a module implements, in its order; `RuleError` when one of them would be ignored or misread."""
    found = []
    for name, value in vars(module).items():
        marked = inspect.isroutine(value) and isinstance(getattr(value, _MARK, None), dict)
        if marked or (name.startswith("grpo_") and callable(value)):
            _check_hook(name, value, marked=marked)
            found.append(name)
    if not found:
        raise RuleError(
            "it implements no hook", where=_module_place(module), hint=f"The hooks are: {', '.join(sorted(_HOOKS))}."
        )
    return tuple(found)


def check_spec(spec: object, hook: str) -> Spec:
    """Give back what a registration hook described, if it is the hook's spec and each of its values is well formed."""
    expected = REGISTRATION[hook]
    if not isinstance(spec, expected):
        right = next((name for name, kind in REGISTRATION.items() if type(spec) is kind), None)
        hint = f"{right} describes those." if right else f"It describes each component by a {expected.__name__}."
        raise RuleError(f"{hook} gave {_shown(spec)}, not a {expected.__name__}", hint=hint)
    label = f"{type(spec).__name__} {spec.name!r}"
    _check_texts(spec, label)
    if isinstance(spec, RecipeSpec):
        _check_recipe(spec, label)
        return spec
    _check_targets(spec, label)
    if isinstance(spec, RewardSpec):
        _check_reward(spec, label)
    if isinstance(spec, RolloutSpec | TrainerSpec):
        _demand(
            _is_frozenset_of_text(spec.capabilities), label, "capabilities", spec.capabilities, "a frozenset of text"
        )
    return spec


def check_unique(specs: Iterable[Spec]) -> None:
    """`RuleError` when a plugin gives one name or alias to two components of a kind."""
    seen: dict[tuple[str, str], Spec] = {}
    for spec in specs:
        for name in (spec.name, *spec.aliases):
            if (spec.kind, name) in seen:
                raise RuleError(
                    f"it registers the {spec.kind} {name!r} twice",
                    hint="Names and aliases are unique among the components of a kind.",
                )
            seen[spec.kind, name] = spec


def line_of(function: Callable[..., object]) -> str | None:
    """Where a function is defined: `grpo_acme/plugin.py:12`."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{short_path(code.co_filename)}:{code.co_firstlineno}" if code is not None else None


def _check_hook(name: str, function: Callable[..., object], *, marked: bool) -> None:
    where = line_of(function)
    options: Mapping[str, object] = getattr(function, _MARK) if marked else {}
    if name not in _HOOKS:
        near = get_close_matches(name, _HOOKS, n=1)
        known = f"The hooks are: {', '.join(sorted(_HOOKS))}."
        hint = f"Did you mean {near[0]!r}?" if near else f"{known} Other names must not begin with 'grpo_'."
        raise RuleError(f"{name!r} is not a hook", where=where, hint=hint)
    if not inspect.isroutine(function):
        raise RuleError(
            f"{name} is {_shown(function)}, not a function", where=where, hint="Write it as a plain function."
        )
    if not marked:
        raise RuleError(f"{name} is not marked as a hook", where=where, hint="Put @hookimpl above it.")
    if options.get("wrapper") or options.get("hookwrapper"):
        raise RuleError(f"{name} is a wrapper, and hooks of other plugins cannot be wrapped", where=where)
    if options.get("specname"):
        raise RuleError(
            f"{name} goes by another name", where=where, hint="Remove `specname`; the function's name decides."
        )
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise RuleError(
            f"{name} is async, and nothing would await it", where=where, hint="Write it as a plain function."
        )
    _check_parameters(name, function, where)


def _check_parameters(name: str, function: Callable[..., object], where: str | None) -> None:
    given = tuple(inspect.signature(getattr(hookspecs, name)).parameters)
    allowed = f"It is given: {', '.join(given)}." if given else "It is given no arguments."
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in given:
            raise RuleError(f"{name} has an unknown argument {parameter.name!r}", where=where, hint=allowed)
        if parameter.default is not parameter.empty:
            # pluggy passes only arguments without a default, so this one would keep it for ever
            raise RuleError(
                f"{name} has a default for {parameter.name!r}, and would never be given the real value",
                where=where,
                hint="Remove the default.",
            )


def _check_texts(spec: Spec, label: str) -> None:
    pattern, shape = (_RECIPE_NAME, "[a-z][a-z0-9._-]*") if isinstance(spec, RecipeSpec) else (_NAME, "[a-z][a-z0-9_]*")
    _demand(_matches(pattern, spec.name), label, "name", spec.name, shape)
    _demand(_is_line(spec.summary), label, "summary", spec.summary, "one line of text")
    for field in _TEXTS:
        value = getattr(spec, field, ())
        _demand(_is_tuple_of_text(value), label, field, value, "a tuple of text")
    for alias in spec.aliases:
        _demand(_matches(pattern, alias), label, "aliases", alias, shape)


def _check_recipe(spec: RecipeSpec, label: str) -> None:
    package_parts = spec.package.split(".") if isinstance(spec.package, str) else [""]
    _demand(all(part.isidentifier() for part in package_parts), label, "package", spec.package, "the name of a package")
    inside = isinstance(spec.path, str) and not spec.path.startswith("/") and ".." not in PurePosixPath(spec.path).parts
    shape = f"a file inside the package that ends in {', '.join(_RECIPE_SUFFIXES)}"
    _demand(inside and spec.path.endswith(_RECIPE_SUFFIXES), label, "path", spec.path, shape)


def _check_targets(spec: ComponentSpec, label: str) -> None:
    _demand(is_target(spec.target), label, "target", spec.target, "pkg.mod:attr")
    _demand(spec.options is None or is_target(spec.options), label, "options", spec.options, "pkg.mod:Model")
    if isinstance(spec, DatasetSpec):
        _demand(spec.source is None or is_target(spec.source), label, "source", spec.source, "pkg.mod:attr")
    if isinstance(spec, RolloutSpec):
        _demand(spec.serve is None or is_target(spec.serve), label, "serve", spec.serve, "pkg.mod:attr")
    for requirement in spec.requires:
        try:
            [Requirement(alternative.strip()) for alternative in requirement.split("|")]
        except InvalidRequirement:
            _demand(False, label, "requires", requirement, "a requirement, as vllm>=0.30, alternatives between ' | '")


def _check_reward(spec: RewardSpec, label: str) -> None:
    _demand(spec.scope in get_args(Scope), label, "scope", spec.scope, " or ".join(get_args(Scope)))
    _demand(spec.runs_in in ("main", "worker"), label, "runs_in", spec.runs_in, "main or worker")
    budget = spec.budget_s
    _demand(budget is None or _is_seconds(budget), label, "budget_s", budget, "a number of seconds above 0")
    _demand(_is_seconds(spec.deadline_s), label, "deadline_s", spec.deadline_s, "a number of seconds above 0")
    if budget is not None and spec.runs_in != "worker":
        raise RuleError(
            f"{label} has budget_s={budget}, but runs in the main process, where it cannot be stopped",
            hint='Add runs_in="worker".',
        )
    for field in ("pure", "verifies"):
        _demand(isinstance(getattr(spec, field), bool), label, field, getattr(spec, field), "True or False")


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _demand(holds: bool, label: str, field: str, value: object, shape: str) -> None:
    if not holds:
        hint = f"Write ({value!r},)." if isinstance(value, str) and shape == "a tuple of text" else None
        raise RuleError(f"{label}: {field} is {_shown(value)}, not {shape}", hint=hint)


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_line(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\n" not in value


def _is_tuple_of_text(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, str) for item in value)


def _is_frozenset_of_text(value: object) -> bool:
    return isinstance(value, frozenset) and all(isinstance(item, str) for item in value)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


def _module_place(module: ModuleType) -> str | None:
    return short_path(module.__file__) if module.__file__ else None

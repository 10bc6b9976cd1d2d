"""The backends of a run, each behind a check of what it gives: a plugin's mistake is told as that plugin's, where it is
made, and not by what breaks later.

Place in the flow: planned component → built → **checked** → the loop.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast, get_args

from grpo_core.errors import PluginError, RolloutError, TrainerError
from grpo_core.protocols import RolloutBackend, SharesWeights, TrainerBackend
from grpo_core.recipe.plan import PlannedComponent
from grpo_core.types import (
    Completion,
    FinishReason,
    LogprobSpace,
    RolloutGroup,
    RolloutRequest,
    TokenStats,
    TrainBatch,
    UpdateReport,
)

__all__ = ["check_methods", "checked_rollout", "checked_trainer", "generate"]

_SHARED, _STREAM = "weights:shared", "weights:stream"
_NEEDS: Mapping[Literal["rollout", "trainer"], Mapping[str, str | None]] = {
    "rollout": {"generate": None, "load_weights": _STREAM, "share": _SHARED, "close": None},
    "trainer": {"module": _SHARED, "iter_weights": _STREAM}
    | dict.fromkeys(("logprobs", "update", "save", "restore", "export", "close")),
}
"""Methods that the loop calls -> the capability that they belong to; None: every backend has them."""


def checked_rollout(built: object, component: PlannedComponent) -> RolloutBackend:
    """The rollout backend that a factory gave. Raises `PluginError` when it lacks a method that the loop calls; its
    groups are checked as they come."""
    check_methods(built, "rollout", component.name, component.capabilities)
    return cast(RolloutBackend, _CheckedRollout(built, component.name))


def checked_trainer(built: object, component: PlannedComponent) -> TrainerBackend:
    """The trainer backend that a factory gave; the same."""
    check_methods(built, "trainer", component.name, component.capabilities)
    return cast(TrainerBackend, _CheckedTrainer(built, component.name))


def check_methods(
    built: object, kind: Literal["rollout", "trainer"], name: str, capabilities: Collection[str] = ()
) -> None:
    """Raise `PluginError` that lists every method of the protocol that an object lacks, or that cannot be called so."""
    protocols = (RolloutBackend, SharesWeights) if kind == "rollout" else (TrainerBackend,)
    faults: list[str] = []
    for method, capability in _NEEDS[kind].items():
        if capability is None or capability in capabilities:
            wanted = next(getattr(each, method) for each in protocols if hasattr(each, method))
            faults += _faults_of(built, method, [*inspect.signature(wanted).parameters][1:], capability)
    if faults:
        what = "a class, not an object of it" if isinstance(built, type) else f"a {type(built).__name__}"
        raise PluginError(
            f"the factory of the {kind} backend '{name}' gave {what}: {'; '.join(faults)}",
            hint=f"Its methods are those of the protocol {protocols[0].__name__} (grpo_core.api).",
        )


def _faults_of(built: object, method: str, arguments: Sequence[str], capability: str | None) -> Iterator[str]:
    shown = f"{method}({', '.join(arguments)})"
    found = getattr(built, method, None)
    if not callable(found):
        yield f"it has no method {shown}" + (f", which its capability {capability} needs" if capability else "")
        return
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):  # compiled
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        yield f"its {method}{signature} cannot be called as {shown}: {error}"


class _CheckedRollout:
    """A rollout backend; what it can do beside its protocol (`rest`, `load_adapter`, …) is its own."""

    def __init__(self, backend: object, name: str) -> None:
        self._backend, self._name = cast(RolloutBackend, backend), name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def generate(self, requests: Sequence[RolloutRequest]) -> Iterator[RolloutGroup]:
        """Every group checked against its request."""
        return generate(self._backend, requests, name=f"the rollout backend '{self._name}'")


def generate(
    backend: RolloutBackend, requests: Sequence[RolloutRequest], *, name: str = "the rollout backend"
) -> Iterator[RolloutGroup]:
    """Yield the backend's groups as they come, each checked against what was asked; every request is answered.

    Raises `RolloutError` that says what is wrong with which completion of `name`.
    """
    waiting = {id(request): request for request in requests}
    groups = cast(object, backend.generate(requests))
    if not isinstance(groups, Iterable):
        raise RolloutError(
            f"{name}: generate gave {_shown(groups)}, not groups", hint="Yield a RolloutGroup a request."
        )
    for group in groups:
        if not isinstance(group, RolloutGroup):
            raise RolloutError(
                f"{name} gave {_shown(group)}, not a RolloutGroup",
                hint="Yield RolloutGroup(request=request, completions=(Completion(…), …)), from grpo_core.api.",
            )
        if waiting.pop(id(group.request), None) is None:
            asked = getattr(getattr(group.request, "sample", None), "id", None)
            raise RolloutError(
                f"{name} answered for sample {asked!r}, which was not asked for, or a second time",
                hint="Put the request itself into its group, as it was given.",
            )
        fault = _fault_of_group(group)
        if fault is not None:
            raise RolloutError(f"{name}: sample {group.sample.id!r}: {fault}")
        yield group
    if waiting:
        missing = ", ".join(repr(request.sample.id) for request in waiting.values())
        raise RolloutError(f"{name} ended without an answer for {len(waiting)} prompts: {missing}")


def _fault_of_group(group: RolloutGroup) -> str | None:
    completions = group.completions
    if not isinstance(completions, tuple):
        return f"its completions are {_shown(completions)}, not a tuple of Completion"
    if len(completions) != group.request.n:
        return f"asked for {group.request.n} completions, got {len(completions)}"
    if group.logprob_space not in get_args(LogprobSpace):
        return f"its logprob_space is {group.logprob_space!r}, not one of {', '.join(get_args(LogprobSpace))}"
    faults = (f"completion {place} {fault}" for place, one in enumerate(completions) if (fault := _fault_of(one)))
    return next(faults, None)


def _fault_of(completion: Completion) -> str | None:
    if not isinstance(completion, Completion):
        return f"is {_shown(completion)}, not a Completion"
    if not isinstance(completion.text, str):
        return f"has {_shown(completion.text)} as text, not a str"
    if not isinstance(completion.finish_reason, FinishReason):
        return f"has {_shown(completion.finish_reason)} as finish_reason, not a FinishReason"
    fault = _fault_of_values(completion.token_ids, "token_ids", int) or _fault_of_values(
        completion.sampling_logprobs, "sampling_logprobs", float
    )
    tokens, logprobs = completion.token_ids, completion.sampling_logprobs
    if fault is None and not tokens:
        return "has no token, not even an end token"
    if fault is None and len(tokens) != len(logprobs):
        return f"has {len(tokens)} tokens but {len(logprobs)} log-probabilities"
    return fault


def _fault_of_values(values: object, name: str, kind: type[int] | type[float]) -> str | None:
    if not isinstance(values, tuple):
        return f"has {_shown(values)} as {name}, not a tuple of {kind.__name__}"
    allowed = (int,) if kind is int else (float, int)
    for each in values:
        if not isinstance(each, allowed) or isinstance(each, bool):
            return f"has {_shown(each)} among its {name}, not only {kind.__name__}; write {kind.__name__}(…) of each"
    return None


class _CheckedTrainer:
    """A trainer backend; what it can do beside its protocol (`export_adapter`) is its own."""

    def __init__(self, backend: object, name: str) -> None:
        self._backend, self._name = cast(TrainerBackend, backend), f"the trainer backend '{name}'"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def logprobs(self, batch: TrainBatch, of: Literal["policy", "reference"]) -> TokenStats:
        """Numbers for every token of the batch, and no other."""
        stats = self._backend.logprobs(batch, of)
        fault = _fault_of_stats(stats, batch)
        if fault is not None:
            raise TrainerError(f"{self._name}: logprobs gave {fault}")
        return stats

    def update(self, batch: TrainBatch) -> UpdateReport:
        """A report with numbers."""
        report = self._backend.update(batch)
        if not isinstance(report, UpdateReport):
            hint = "Return UpdateReport(metrics={…}), from grpo_core.api."
            raise TrainerError(f"{self._name}: update gave {_shown(report)}, not an UpdateReport", hint=hint)
        if not isinstance(report.metrics, Mapping):
            raise TrainerError(f"{self._name}: update gave {_shown(report.metrics)} as metrics, not a mapping")
        for metric, value in report.metrics.items():
            if not isinstance(metric, str) or not isinstance(value, float | int):
                raise TrainerError(f"{self._name}: update gave {_shown(value)} as the metric {metric!r}, not a float")
        return report


def _fault_of_stats(stats: object, batch: TrainBatch) -> str | None:
    if not isinstance(stats, TokenStats):
        return f"{_shown(stats)}, not TokenStats"
    for name in ("logprobs", "space_logprobs", "entropies"):
        rows = getattr(stats, name)
        if rows is None and name == "space_logprobs":
            continue
        fault = _fault_of_rows(rows, batch)
        if fault is not None:
            return f"{name} {fault}"
    return None


def _fault_of_rows(rows: Any, batch: TrainBatch) -> str | None:
    try:
        shape = [[len(member) for member in group] for group in rows]
    except TypeError:
        return f"of {_shown(rows)}, not [groups][members][T] of float"
    wanted = [[len(member.token_ids) for member in group.members] for group in batch.groups]
    if shape == wanted:
        return None
    if len(shape) != len(wanted):
        return f"for {len(shape)} groups of {len(wanted)}"
    place = next(place for place, (one, other) in enumerate(zip(shape, wanted, strict=True)) if one != other)
    return f"for {shape[place]} tokens in the members of group {place}, which have {wanted[place]}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"

"""Which arguments a reward function gets: its parameters bound by name, once, before any model loads.

A parameter is a name of the run (`grpo_core.types.reserved`) or a dataset column; `columns` in the recipe says
otherwise. Knows nothing of where and when the function runs.

Place in the flow: **binding** (at launch) … completions → call → outcomes.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from grpo_core.errors import RewardError
from grpo_core.types import Completion, RolloutRequest
from grpo_core.types.reserved import RESERVED_NAMES

__all__ = ["Answer", "Binding", "RunValues", "TrainerState", "bind", "signature_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One completion and the request it answers: what a score is given for."""

    request: RolloutRequest
    """Prompt and sample."""
    completion: Completion
    """The answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerState:
    """Where the run stands, under the names that reward functions of other trainers read."""

    global_step: int
    """Steps done before this one."""
    max_steps: int
    """The last step of the run."""
    epoch: float
    """Passes over the training rows so far."""


@dataclass(frozen=True, kw_only=True)
class RunValues:
    """The run's own values in one step."""

    step: int
    """From 1."""
    epoch: float
    """Passes over the training rows so far."""
    progress: float
    """The share of the run that this step ends, from 0 to 1."""
    max_steps: int
    """The last step of the run."""

    @cached_property
    def trainer_state(self) -> TrainerState:
        """The same, under other trainers' names."""
        return TrainerState(global_step=max(self.step - 1, 0), max_steps=self.max_steps, epoch=self.epoch)


_PER_ANSWER: Mapping[str, Callable[[Answer], object]] = {
    "prompts": lambda answer: answer.request.prompt_text,
    "messages": lambda answer: [{"role": m.role, "content": m.content} for m in answer.request.sample.messages],
    "completions": lambda answer: answer.completion.text,
    "completion_ids": lambda answer: list(answer.completion.token_ids),
    "finish_reasons": lambda answer: answer.completion.finish_reason.value,
    "sample_ids": lambda answer: answer.request.sample.id,
}
_PER_RUN: Mapping[str, Callable[[RunValues], object]] = {
    "step": lambda run: run.step,
    "epoch": lambda run: run.epoch,
    "progress": lambda run: run.progress,
    "trainer_state": lambda run: run.trainer_state,
}
_IN_IDENTITY = ("prompts", "messages", "completions", "completion_ids", "finish_reasons")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The arguments of a reward function by name."""

    reserved: tuple[str, ...]
    """The run's names that it gets."""
    columns: Mapping[str, str]
    """Parameter -> the dataset column it gets."""

    @property
    def records(self) -> bool:
        """Whether the function gets `record`, which the caller makes for each call."""
        return "record" in self.reserved

    def arguments(self, answers: Sequence[Answer], run: RunValues) -> dict[str, object]:
        """Everything but `record`: a fresh list for what differs by completion, the value itself for the run's."""
        found: dict[str, object] = {}
        for name in self.reserved:
            if name in _PER_ANSWER:
                found[name] = [_PER_ANSWER[name](answer) for answer in answers]
            elif name in _PER_RUN:
                found[name] = _PER_RUN[name](run)
        for parameter, column in self.columns.items():
            found[parameter] = [answer.request.sample.columns.get(column) for answer in answers]
        return found

    def identity(self, answer: Answer) -> Hashable:
        """Equal for answers that a pure function cannot tell apart: the same completion and the same columns."""
        parts = [_PER_ANSWER[name](answer) for name in _IN_IDENTITY if name in self.reserved]
        columns = [answer.request.sample.columns.get(column) for column in self.columns.values()]
        try:
            # Pickled, not compared: 1, 1.0 and True are equal, and lists are not hashable.
            return pickle.dumps((parts, columns))
        except Exception:  # noqa: BLE001 - columns hold whatever a dataset holds, and pickling runs its code
            return (pickle.dumps(parts), id(answer.request.sample))


def bind(function: object, *, name: str, columns: Iterable[str], renames: Mapping[str, str] | None = None) -> Binding:
    """Bind the parameters of reward `name` to the run's names and the dataset's `columns`.

    `renames` maps parameters to columns. Raises `RewardError` with every reason why it cannot be called.
    """
    available = sorted(set(columns) - RESERVED_NAMES)
    signature = signature_of(function, name)
    parameters = signature.parameters.values()
    _refuse_positional(parameters, name)
    takes_rest = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    named = [parameter for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
    problems = _rename_problems(renames or {}, named, takes_rest, available)
    bound: dict[str, str] = {key: column for key, column in (renames or {}).items() if column in available}
    for parameter in named:
        known = parameter.name in RESERVED_NAMES or parameter.name in (renames or {})
        if parameter.name in available and not known:
            bound[parameter.name] = parameter.name
        elif not known and parameter.default is parameter.empty:
            problems.append(_missing(name, parameter.name, available))
    if problems:
        raise RewardError("\n  ".join(f"reward '{name}': {problem}" for problem in problems))
    reserved = {p.name for p in named if p.name in RESERVED_NAMES}
    if takes_rest:
        reserved = set(RESERVED_NAMES)
        taken = set(bound.values())
        bound |= {column: column for column in available if column not in bound and column not in taken}
    return Binding(reserved=tuple(sorted(reserved)), columns=bound)


def signature_of(function: object, name: str) -> inspect.Signature:
    """Which parameters reward `name` takes; raises `RewardError` for what cannot be called by name."""
    if isinstance(function, type) or not callable(function):
        kind = "a class" if isinstance(function, type) else f"{type(function).__name__}: {function!r:.60}"
        raise RewardError(
            f"reward '{name}' is {kind}, not a function",
            hint="Name a function or a callable object; one that needs options is made by a factory "
            "make(options, context) in a plugin.",
        )
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise RewardError(
            f"reward '{name}' does not say which parameters it takes ({error})",
            hint="Wrap it in a Python function with named parameters.",
        ) from error


def _refuse_positional(parameters: Iterable[inspect.Parameter], name: str) -> None:
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            what = "*" + parameter.name if parameter.kind is parameter.VAR_POSITIONAL else parameter.name
            raise RewardError(
                f"reward '{name}' takes '{what}' by position, but arguments are bound by name",
                hint="Give it ordinary parameters: def my_reward(completions, solution, **kwargs).",
            )


def _rename_problems(
    renames: Mapping[str, str], named: Sequence[inspect.Parameter], takes_rest: bool, available: Sequence[str]
) -> list[str]:
    problems = []
    parameters = [parameter.name for parameter in named]
    for parameter, column in renames.items():
        if parameter in RESERVED_NAMES:
            problems.append(f"`columns` gives '{parameter}' a column, but that name means the run's own {parameter}")
        elif parameter not in parameters and not takes_rest:
            problems.append(
                f"`columns` names a parameter '{parameter}', which it does not have{_near(parameter, parameters)}"
            )
        elif column not in available:
            problems.append(
                f"`columns` gives '{parameter}' the column '{column}', which the dataset does not have"
                f"{_near(column, available)}; {_listed(available)}"
            )
    return problems


def _missing(reward: str, parameter: str, available: Sequence[str]) -> str:
    return (
        f"its parameter '{parameter}' is neither a dataset column nor a name of the run"
        f"{_near(parameter, [*available, *RESERVED_NAMES])}; {_listed(available)}. Name the column it should get with "
        f"`columns: {{{parameter}: <column>}}` (--set rewards.{reward}.columns.{parameter}=<column>), or give the "
        "parameter a default"
    )


def _near(name: str, known: Sequence[str]) -> str:
    matches = get_close_matches(name, known, n=1)
    return f" (did you mean '{matches[0]}'?)" if matches else ""


def _listed(available: Sequence[str]) -> str:
    return f"the dataset has {', '.join(available)}" if available else "the dataset has no columns besides the prompt"

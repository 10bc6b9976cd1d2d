"""Rewards in the form of another trainer: recognised before a model loads, with the few lines that make them ours.

By what they are and which parameters they take; only where that is not enough, by their source (`chat_form`). A reward
that could work is never refused.

Place in the flow: built reward → **form** → binding.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grpo_core.errors import RewardError
from grpo_core.reward.call import is_async
from grpo_core.reward.chat_form import reads_chats
from grpo_core.types.reserved import RESERVED_NAMES

__all__ = ["refuse_foreign"]

_REFERENCES = ("ground_truth", "solution", "answer", "label", "target", "reference")
"""Columns that hold a right answer, as data sets call them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A reward to look at."""

    target: str
    """`pkg.mod:attr` or `/absolute/file.py:attr`."""
    parameters: Sequence[inspect.Parameter]
    """What it takes."""
    waits: bool
    """Whether it must be awaited."""
    columns: Collection[str]
    """What the dataset has."""

    @property
    def names(self) -> frozenset[str]:
        """Of its parameters."""
        return frozenset(parameter.name for parameter in self.parameters)

    def lacks(self, *names: str) -> bool:
        """Whether it takes all of these and will be given none: they are neither columns nor names of the run."""
        return all(name in self.names and name not in self.columns for name in names)

    @property
    def reference(self) -> str:
        """The column with the right answer, as far as names tell."""
        return next((name for name in _REFERENCES if name in self.columns), _REFERENCES[0])

    @property
    def note(self) -> str:
        """What to say where the wrapper has to guess that column."""
        is_guess = self.reference not in self.columns
        return f"; `{self.reference}` below is to be the column with the right answers" if is_guess else ""

    @property
    def word(self) -> str:
        """Its name inside its module."""
        return self.target.rpartition(":")[2]

    @property
    def import_line(self) -> str:
        """How a file beside it, or anywhere, brings it in."""
        place = self.target.rpartition(":")[0]
        module = Path(place).stem if place.endswith(".py") else place
        return f"from {module} import {self.word.partition('.')[0]}"

    def define(self, parameters: str, *body: str) -> str:
        """The wrapper `my_reward`, ready to be copied."""
        head = f"{'async ' if self.waits else ''}def my_reward({parameters}):"
        return "\n".join([self.import_line, head, *(f"    {line}" for line in body)])

    def call(self, arguments: str) -> str:
        """A call of the reward itself."""
        return f"{'await ' if self.waits else ''}{self.word}({arguments})"


def refuse_foreign(
    function: object, *, name: str, target: str, columns: Collection[str], renames: Mapping[str, str]
) -> None:
    """Raise `RewardError` for a reward that is written for another trainer, with a wrapper that makes it work."""
    if isinstance(function, type):
        form = _orm_class(function, target)
    elif callable(function):
        form = _function_form(function, target, frozenset(columns) | frozenset(renames))
    else:
        return
    if form is not None:
        what, wrapper = form
        hint = f"Write this into a file of your own beside it, and name that: ./wrapped.py:my_reward\n{wrapper}"
        raise RewardError(f"reward '{name}' {what}", hint=hint.replace("\n", "\n    "))


def _orm_class(function: type, target: str) -> tuple[str, str] | None:
    """A class whose objects take completions (ms-swift's `ORM`): an object of it does."""
    call = getattr(function, "__call__", None)  # noqa: B004  its objects' calls are meant
    if not inspect.isfunction(call) or "completions" not in inspect.signature(call).parameters:
        return None
    asked = _Asked(target=target, parameters=(), waits=False, columns=())
    needed = [
        f"{parameter.name}=None"
        for parameter in [*inspect.signature(function).parameters.values()]
        if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    what = f"is the class {asked.word}, as ms-swift's reward plugins are; an object of it is a reward"
    return what, f"{asked.import_line}\nmy_reward = {asked.word}({', '.join(needed)})"


def _function_form(function: Callable[..., object], target: str, columns: Collection[str]) -> tuple[str, str] | None:
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):  # the binding says it
        return None
    asked = _Asked(target=target, parameters=parameters, waits=is_async(function), columns=columns)
    if "completions" not in asked.names:
        return _verl(asked) or _verl_batch(asked) or _openrlhf(asked)
    return _conversational(asked, reads_chats(function))


def _verl(asked: _Asked) -> tuple[str, str] | None:
    if not asked.lacks("solution_str") or "ground_truth" not in asked.names:
        return None
    source, extra = ("data_source" in asked.columns), ("extra_info" in asked.columns)
    taken = {"data_source": source, "extra_info": extra}
    given = ["completions", asked.reference, *(name for name, is_there in taken.items() if is_there)]
    zipped = dict(zip(given, ("text", "truth", *(["source"] * source), *(["info"] * extra)), strict=True))
    values = {
        "solution_str": "text",
        "ground_truth": "truth",
        "data_source": "source" if source else repr("my_data"),
        "extra_info": "info" if extra else "None",
    }
    arguments = ", ".join(f"{each}={values[each]}" for each in values if each in asked.names)
    wrapper = asked.define(
        ", ".join(given),
        f"found = [{asked.call(arguments)} for {', '.join(zipped.values())} in zip({', '.join(zipped)})]",
        "return [float(each['score'] if isinstance(each, dict) else each) for each in found]",
    )
    what = f"is written for verl, which calls it for one answer at a time, as `solution_str`{asked.note}"
    return what, wrapper


def _verl_batch(asked: _Asked) -> tuple[str, str] | None:
    if not asked.lacks("solution_strs") or "ground_truths" not in asked.names:
        return None
    values = {
        "solution_strs": "completions",
        "ground_truths": asked.reference,
        "data_sources": "['my_data'] * len(completions)",
        "extra_infos": "[None] * len(completions)",
    }
    arguments = ", ".join(f"{each}={values[each]}" for each in values if each in asked.names)
    wrapper = asked.define(
        f"completions, {asked.reference}",
        f"found = {asked.call(arguments)}",
        "return [float(each['score'] if isinstance(each, dict) else each) for each in found]",
    )
    return f"is written for verl's batches, which come as `solution_strs`{asked.note}", wrapper


def _openrlhf(asked: _Asked) -> tuple[str, str] | None:
    if not asked.lacks("queries"):
        return None
    labels = next((parameter for parameter in asked.parameters if parameter.name == "labels"), None)
    if labels is None and "prompts" not in asked.names:
        return None
    label = "labels" if "labels" in asked.columns else asked.reference
    values = {
        "queries": "[prompt + text for prompt, text in zip(prompts, completions)]",
        "prompts": "prompts",
        "labels": label,
    }
    arguments = ", ".join(f"{each}={values[each]}" for each in values if each in asked.names)
    wrapper = asked.define(
        "completions, prompts" + (f", {label}" if labels else ""),
        f"found = {asked.call(arguments)}",
        "found = found['rewards'] if isinstance(found, dict) else found",
        "return [float(each) for each in found]",
    )
    return f"is written for OpenRLHF, which gives it prompts and answers in one, as `queries`{asked.note}", wrapper


def _conversational(asked: _Asked, misread: Mapping[str, str]) -> tuple[str, str] | None:
    """Chats where ours are texts (TRL's conversational rewards, open-r1's)."""
    if not misread:
        return None
    takes, passes = [*dict.fromkeys(_conversions(asked, misread))], []
    for parameter in asked.parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            passes.append(f"**{parameter.name}")
        elif parameter.name in misread:
            passes.append(f"{parameter.name}={'chats' if parameter.name == 'completions' else 'messages'}")
        elif parameter.default is parameter.empty or parameter.name in {*asked.columns, *RESERVED_NAMES}:
            passes.append(f"{parameter.name}={parameter.name}")
    chats = "chats = [[{'role': 'assistant', 'content': text}] for text in completions]"
    body = [chats] if "completions" in misread else []
    wrapper = asked.define(", ".join(takes), *body, f"return {asked.call(', '.join(passes))}")
    what = " and ".join(f"`{shown}`" for shown in misread.values())
    return f"reads {what}: chats, as TRL gives them to it. Here {' and '.join(misread)} are texts", wrapper


def _conversions(asked: _Asked, misread: Mapping[str, str]) -> Iterator[str]:
    """The parameters of the wrapper: its own, and `messages` instead of prompts that are read as chats."""
    for parameter in asked.parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            yield f"**{parameter.name}"
        elif parameter.name in misread:
            yield parameter.name  # prompts too, so that they are not among the `**kwargs`
            yield from ["messages"] if parameter.name == "prompts" else []
        elif parameter.default is parameter.empty or parameter.name in {*asked.columns, *RESERVED_NAMES}:
            yield parameter.name

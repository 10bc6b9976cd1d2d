"""Rewards as users write them, sound and unsound, for the tests of trying them."""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Callable
from typing import Any

_calls = itertools.count()


def exact(completions: list[str], solution: list[object]) -> list[float]:
    """The whole completion is the answer."""
    return [
        float(text.strip() == f"<answer>{right}</answer>") for text, right in zip(completions, solution, strict=True)
    ]


def boxed(completions: list[str], solution: list[object]) -> list[float | None]:
    """None where there is no right answer."""
    return [
        None if right is None else float(text == f"\\boxed{{{right}}}")
        for text, right in zip(completions, solution, strict=True)
    ]


def contains(completions: list[str], solution: list[object]) -> list[float]:
    """Pays whoever says everything."""
    return [float(str(right) in text) for text, right in zip(completions, solution, strict=True)]


def mentions_def(completions: list[str], solution: list[object]) -> list[float]:
    """Pays whatever defines something."""
    return [float("def " in text) for text in completions]


def always(completions: list[str], solution: list[object]) -> list[float]:
    """Pays everything."""
    return [1.0] * len(completions)


def never(completions: list[str], solution: list[object]) -> list[float]:
    """Pays nothing."""
    return [0.0] * len(completions)


def no_opinion(completions: list[str], solution: list[object]) -> None:
    """Applies to nothing."""


def empty_is_an_error(completions: list[str], solution: list[object]) -> list[float]:
    """Divides by the length."""
    return [
        float(bool(1 / len(text)) and text == str(right)) for text, right in zip(completions, solution, strict=True)
    ]


def counts_calls(completions: list[str], solution: list[object]) -> list[float]:
    """Another score each time."""
    return [next(_calls) / 1e6 for _ in completions]


def first_of_batch(completions: list[str], solution: list[object]) -> list[float]:
    """Depends on who comes first."""
    return [
        float(place == 0 and text == str(right))
        for place, (text, right) in enumerate(zip(completions, solution, strict=True))
    ]


def main_thread_only(completions: list[str], solution: list[object]) -> list[float]:
    """Sets an alarm, as many do; elsewhere than on the main thread it swallows the error."""
    try:
        signal.signal(signal.SIGUSR2, signal.SIG_DFL)
    except ValueError:
        assert threading.current_thread() is not threading.main_thread()
        return [0.0] * len(completions)
    return [float(text == str(right)) for text, right in zip(completions, solution, strict=True)]


def equation(completions: list[str], nums: list[list[int]], target: list[int]) -> list[float]:
    """A checker: it gets the task, and the answer is in a column that it does not get."""
    return [
        float(text == f"{a}+{b}" and a + b == value)
        for text, (a, b), value in zip(completions, nums, target, strict=True)
    ]


def length(completions: list[str]) -> list[float]:
    """Gets no column."""
    return [float(len(text)) for text in completions]


def tokens(completion_ids: list[list[int]]) -> list[float]:
    """Counts tokens."""
    return [float(len(ids)) for ids in completion_ids]


def chat(completions: list[str], messages: list[list[dict[str, str]]]) -> list[float]:
    """Reads the conversation."""
    return [float(len(turns)) for turns in messages]


def moment(
    completions: list[str], epoch: float, progress: float, trainer_state: Any, record: Callable[..., None]
) -> list[float]:
    """Reads where the run stands."""
    record("max_steps", trainer_state.max_steps)
    return [epoch + 10 * progress] * len(completions)


def everything(
    completions: list[str], record: Callable[..., None], bonus: float = 0.5, **kwargs: object
) -> list[float]:
    """Takes all there is."""
    record("letters", [len(text) for text in completions])
    return [bonus] * len(completions)


def group_rank(completions: list[str], solution: list[object]) -> list[float]:
    """Compares the completions of a call."""
    longest = max(map(len, completions))
    return [float(len(text) == longest) for text in completions]


def not_finite(completions: list[str]) -> list[float]:
    """NaN."""
    return [float("nan")] * len(completions)


class Sandboxed:
    """Says where it runs."""

    def __call__(self, completions: list[str]) -> list[float]:
        return [0.5] * len(completions)

    def describe(self) -> str:
        return "a box of its own"


sandboxed = Sandboxed()
not_a_function = 3


def reads_tests(completions: list[str], tests: list[str]) -> list[float]:
    """Pays programs only, of which the rows hold none."""
    return [0.0 for _ in completions]

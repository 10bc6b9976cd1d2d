"""A problem: runs for the program, and checks of what comes back. Only the runs ever reach a program.

Place in the flow: completion → program, row → **problem** → job → run results → comparison → score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from grpo_rewards_code.executor.types import ExpressionRun, Run

__all__ = [
    "Check",
    "Close",
    "Equal",
    "Later",
    "Member",
    "Output",
    "Problem",
    "Raises",
    "Replay",
    "Shell",
    "Test",
    "TestsError",
    "Truth",
]


class TestsError(ValueError):
    """The tests of a row cannot be read or judged: the reward does not apply to it. One line for a person."""

    __test__ = False  # pytest collects what begins with "Test"


@dataclass(frozen=True, slots=True)
class Later:
    """An expected value that is an expression: it is evaluated once, apart from every program."""

    run: ExpressionRun
    """What gives it."""


Style = Literal["json", "python"]
"""How values are compared: `json`: a tuple is an array, keys of objects are texts. `python`: as Python's `==` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What is printed equals one of these texts."""

    any_of: tuple[str, ...]
    unordered: bool = False
    """The lines may come in any order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equal:
    """The value equals one of these."""

    any_of: tuple[Any, ...]
    style: Style
    unordered: bool = False
    """The items of the outermost list may come in any order."""
    negated: bool = False
    """The value equals none of them."""
    same_type: bool = False
    """For `is`: True is not 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """The value, or each number in it, is as close to the expected as the test says."""

    expected: Any
    relative: float
    absolute: float
    relative_to: Literal["expected", "larger"] = "expected"
    """Of what `relative` is a share: pytest and numpy take the expected number, `math.isclose` the larger one."""
    exclusive: bool = False
    """Whether the difference must be less than the limit; else it may be the limit."""
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """The value equals an element of a collection (or is a key of it, or a part of a text)."""

    collection: Any
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The value is this truth value."""

    expected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Raises:
    """The run gives the name of the built-in exception that ended it, and its message."""

    kinds: tuple[str, ...]
    """Names of built-in exceptions, of which it must be one or derive from one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """An assertion in which values of runs are to be filled in: evaluated apart from every program."""

    expression: str
    """Python source in which the i-th value is the name `_value_i_`."""
    setup: str = ""


Replay = Callable[[], tuple[tuple[Run, ...], int]]
"""Gives runs in the place of those of a test, none where they would be the same, and how often they call the program.
"""
Check = Output | Equal | Close | Member | Truth | Raises | Shell


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One test: what is run, and what must come of it."""

    __test__ = False

    runs: tuple[Run, ...]
    """One, or for a `Shell` one a value in it."""
    check: Check
    repeats: int = 0
    """How many calls of earlier assertions are evaluated again before it: it may take that many times longer."""
    replay: Replay | None = field(default=None, compare=False)
    """For an assertion: the same after everything that comes before it in its script."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Everything a row asks of a program."""

    tests: tuple[Test, ...]
    """At least one."""
    names: frozenset[str] = frozenset()
    """Functions or classes that the tests call."""
    imports: Sequence[str] = ()
    """Import statements of the tests that come to run beside the program."""

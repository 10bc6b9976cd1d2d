"""A problem: runs for the program, and checks of what comes back. Only the runs ever reach a program.

Place in the flow: completion → program, row → **problem** → job → run results → comparison → score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from grpo_rewards_code.executor.types import Run

__all__ = ["Check", "Equal", "Output", "Problem", "Script", "Test", "TestsError"]


class TestsError(ValueError):
    """The tests of a row cannot be read or judged: the reward does not apply to it. One line for a person."""

    __test__ = False  # pytest collects what begins with "Test"


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


Check = Output | Equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One test: what is run, and what must come of it."""

    __test__ = False

    run: Run
    check: Check


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Test code, which runs in a sandbox of its own and asks the program from there."""

    source: str
    """Python source."""
    entry_point: str | None
    """What a function `check(candidate)` of it is called with."""
    checks: int
    """How many places of it may fail: a program that ends early is paid for no fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Everything a row asks of a program: tests, or a script."""

    tests: tuple[Test, ...] = ()
    """At least one where there is no script."""
    script: Script | None = None
    names: frozenset[str] = frozenset()
    """Functions or classes that the tests call."""

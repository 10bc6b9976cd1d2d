"""What an assertion becomes: a test, and what it leaves behind for the assertions after it."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_rewards_code.assertion.scope import Line, Scope
from grpo_rewards_code.problem.types import Test

__all__ = ["Split"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One assertion taken apart."""

    test: Test
    imports: tuple[str, ...]
    """Imports that run beside the program for it."""
    parts: tuple[Line, ...]
    """What runs beside the program for it, one line a run, in the order in which Python would evaluate them."""
    scope: Scope
    """What it sees."""
    before: str = ""
    """Statements of its own that come before what is evaluated."""
    value: str | None = None
    """The expression that is evaluated; None: each part is one."""

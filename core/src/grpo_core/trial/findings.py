"""What an audit says about one control, or one way of scoring."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.trial.controls import Judged
from grpo_core.types import Outcome

__all__ = ["Example", "Finding"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A completion that shows what is wrong."""

    sample_id: str
    """Of which row."""
    completion: str
    """The completion."""
    outcome: Outcome
    """What it scored."""
    note: str = ""
    """What it scored otherwise, say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One control, or one way of scoring, over all its rows."""

    name: str
    """Of the control."""
    judged: Judged
    """What a sound reward does; for ways of scoring `pays`: the same as before."""
    mean: float | None = None
    """Of the scores there are; None: there are none, or it is about something else."""
    count: int = 0
    """Completions."""
    none: int = 0
    """To how many it does not apply."""
    failed: int = 0
    """How many scores could not be computed."""
    problem: str | None = None
    """Why it fails; None: it is as it should be, or not judged."""
    example: Example | None = None
    """Of the problem."""

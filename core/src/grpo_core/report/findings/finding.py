"""A finding: one thing that a run's numbers say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "Level", "number", "percent"]

Level = Literal["good", "note", "warning", "bad"]
"""`note`: neither good nor bad; `warning`: look at it; `bad`: the run is spoilt by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One sentence or two, with the numbers they rest on."""

    rule: str
    """Its name, for links and tests."""
    level: Level
    title: str
    """A few words."""
    text: str
    """What was seen."""
    advice: str = ""
    """What to do, where there is something."""
    metrics: tuple[str, ...] = ()
    """The curves it is read from."""


def number(value: float) -> str:
    """Three significant digits, without an exponent where that is readable: `0.214`, `12.3`, `351`, `2e-06`."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(share: float) -> str:
    """`12%`; `0.4%` below one."""
    return f"{share:.1%}" if 0 < abs(share) < 0.01 else f"{share:.0%}"

"""Where the ranges of numbers end, and why: a number beyond is a slip of the hand, or breaks what computes with it.

A setting has its bounds from pydantic's `Field`, and its reason from `Because`, which ends the message about a number
outside of them.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ADVANTAGES",
    "COUNTS",
    "FLOAT32",
    "GROUPS",
    "INT64_MAX",
    "LEARNING_RATES",
    "MINUTES",
    "MOST",
    "PIXELS",
    "RANKS",
    "SECONDS",
    "SEEDS",
    "SHARES",
    "TEMPERATURES",
    "TOKENS",
    "Because",
    "bound_text",
]


@dataclass(frozen=True, slots=True)
class Because:
    """Why a number has its range: metadata of a field."""

    reason: str
    """A clause, which ends the message about a number outside."""


MOST = 10**9
"""The end of whatever is counted."""
INT64_MAX = 2**63 - 1

COUNTS = Because("at one a second, to count further takes more than 30 years")
TOKENS = Because("no model reads, and no machine holds, as many at once")
PIXELS = Because("no larger image is opened, and an image has one pixel at least")
RANKS = Because("no layer is as wide, and an adapter wider than its layer can do no more than the layer")
GROUPS = Because("all of them are in memory at once, and are compared with each other")
SEEDS = Because("the random generators of torch and of the engines take 64 bits, one of them for the sign")
SECONDS = Because("the system waits in milliseconds of 32 bits, which end after 24 days")
MINUTES = Because("more often is after every step, which save_steps says; more seldom than every other year is never")
SHARES = Because("a smaller share comes to nothing in float32")
TEMPERATURES = Because("below, the completions of a group are all the same; above, every token is as likely as any")
LEARNING_RATES = Because(
    "AdamW moves a weight by about this in an update: less is lost in the rounding of float32, more is no training"
)
ADVANTAGES = Because("scores, totals and advantages are float32, and so are their squares")
FLOAT32 = Because("it is computed with in float32, which rounds less to 0 and more to infinity")


def bound_text(bound: float) -> str:
    """A bound for people: `1,000,000`, `0.001`, `1e-12`."""
    return f"{int(bound):,}" if float(bound).is_integer() else f"{bound:g}"

"""What a tiny model is taught: demonstrations to imitate, the texts its tokenizer is made for, a README for its folder.

A lesson teaches the form of an answer and some of the task, and leaves something to learn from rewards: a share of its
demonstrations are careless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Demonstration", "Lesson", "WarmUp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """One example to imitate."""

    prompt: str
    """What the user says."""
    answer: str
    """What the assistant says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """How long and on what a model is warmed up."""

    updates: int = 1000
    """Optimiser updates."""
    batch: int = 64
    """Demonstrations of one update."""
    learning_rate: float = 4e-3
    """Muon's, at its peak; it rises over the first updates and falls along a cosine. AdamW's is half of it."""
    careful_share: float = 0.6
    """How often a demonstration is careful where it could be careless."""
    seed: int = 0
    """Of weights, problems and demonstrations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """Everything that tells one tiny model from another."""

    command: str
    """What makes the model: `python -m package.of.the.lesson`."""
    texts: Callable[[], Iterable[str]]
    """What the tokenizer is made for."""
    vocabulary: int
    """The most tokens it has, before tags and ends of turns."""
    batches: Callable[[WarmUp], Iterator[Sequence[Demonstration]]]
    """Batches without an end; of training problems only."""
    readme: str
    """Of the folder; {fields} are those of `folder.describe`."""
    defaults: WarmUp
    """How the model that ships was warmed up."""

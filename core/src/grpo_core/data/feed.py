"""The prompts of each step: out of one dataset, or out of several by their weights.

Place in the flow: samples → prompts → **feed** → rollout. What a step takes is a function of the seed and the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from grpo_core.data.prompts import Prompt
from grpo_core.data.sampler import check_batch, draws, row_of, shares

__all__ = ["Feed", "PromptSet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSet:
    """The training prompts of one dataset."""

    name: str
    """In a mix; empty: it is the only one."""
    weight: float
    """Its share of the prompts, relative to the others."""
    prompts: tuple[Prompt, ...]
    """In the order of their rows."""


class Feed:
    """The training prompts of a run, in the order they are asked."""

    def __init__(self, sets: Sequence[PromptSet], *, prompts_per_step: int, seed: int) -> None:
        """Raises `DataError` when a step asks a dataset for more prompts than it has."""
        self._sets = tuple(sets)
        self._prompts_per_step, self._seed = prompts_per_step, seed
        self._shares = shares([each.weight for each in sets])
        for each, share in self.sources:
            check_batch(len(each.prompts), share, prompts_per_step, name=each.name)

    @property
    def sources(self) -> list[tuple[PromptSet, Fraction]]:
        """Where the prompts come from, and the share of each."""
        return list(zip(self._sets, self._shares, strict=True))

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """All of them, one dataset after the other."""
        return tuple(prompt for each in self._sets for prompt in each.prompts)

    @property
    def rows(self) -> int:
        """How many prompts an epoch asks: as many as there are rows."""
        return sum(len(each.prompts) for each in self._sets)

    def take(self, step: int) -> list[Prompt]:
        """The prompts of step `step`, counted from 1."""
        taken = []
        for draw in draws(step, shares=self._shares, prompts_per_step=self._prompts_per_step):
            chosen = self._sets[draw.dataset]
            row = row_of(draw.number, rows=len(chosen.prompts), seed=self._seed, name=chosen.name)
            taken.append(chosen.prompts[row])
        return taken

    def epochs_before(self, step: int) -> float:
        """Epochs done before step `step` begins: 0.0 at step 1, 1.5 when the second epoch is half over."""
        return (step - 1) * self._prompts_per_step / self.rows

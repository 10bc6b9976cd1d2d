"""The prompts of each step: out of one dataset, or out of several by their weights.

Place in the flow: samples → prompts → **feed** → rollout. What a step takes is a function of the seed and the step;
only a stream has a state, its position, because it can only be read forwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from grpo_core.data.prompts import Prompt
from grpo_core.data.sampler import check_batch, draws, row_of, shares
from grpo_core.data.stream import PromptStream

__all__ = ["Feed", "Order", "PromptSet"]

Order = Literal["shuffled", "file"]
"""Of the rows of a dataset: a permutation by the seed in each pass, or as they stand in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSet:
    """The training prompts of one dataset."""

    name: str
    """In a mix; empty: it is the only one."""
    weight: float
    """Its share of the prompts, relative to the others."""
    prompts: tuple[Prompt, ...]
    """In the order of their rows; of a stream those of its first block."""
    stream: PromptStream | None = None
    """Where prompts come from when they are not all here."""

    @property
    def rows(self) -> int | None:
        """How many prompts there are; None: nobody knows."""
        return len(self.prompts) if self.stream is None else None


class Feed:
    """The training prompts of a run, in the order they are asked."""

    def __init__(
        self, sets: Sequence[PromptSet], *, prompts_per_step: int, seed: int, order: Order = "shuffled"
    ) -> None:
        """`order` is that of each dataset's rows; a stream has its own. Raises `DataError` when a step asks a dataset
        for more prompts than it has."""
        self._sets = tuple(sets)
        self._prompts_per_step, self._seed, self._order = prompts_per_step, seed, order
        self._step: int | None = None
        self._streams = {each.name: each.stream for each in sets if each.stream is not None}
        self._shares = shares([each.weight for each in sets])
        for each, share in self.sources:
            if each.stream is None:
                check_batch(len(each.prompts), share, prompts_per_step, name=each.name)

    @property
    def sources(self) -> list[tuple[PromptSet, Fraction]]:
        """Where the prompts come from, and the share of each."""
        return list(zip(self._sets, self._shares, strict=True))

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """All that are known, one dataset after the other."""
        return tuple(prompt for each in self._sets for prompt in each.prompts)

    @property
    def rows(self) -> int | None:
        """How many prompts an epoch asks: as many as there are rows. None: nobody knows, some are streamed."""
        counts = [each.rows for each in self._sets]
        return None if None in counts else sum(filter(None, counts))

    def take(self, step: int) -> list[Prompt]:
        """The prompts of step `step`, counted from 1; with a stream, steps come in order."""
        assert self.rows is not None or self._step in (None, step - 1), f"step {step} of a stream after {self._step}"
        self._step = step
        asked = draws(step, shares=self._shares, prompts_per_step=self._prompts_per_step)
        return [self._prompt(self._sets[draw.dataset], draw.number) for draw in asked]

    def epochs_before(self, step: int) -> float:
        """Epochs done before step `step` begins: 0.0 at step 1, 1.5 when the second epoch is half over; with a stream,
        the whole passes over it so far."""
        if self.rows is None:
            return float(min(stream.passes for stream in self._streams.values()))
        return (step - 1) * self._prompts_per_step / self.rows

    def state(self) -> dict[str, Any]:
        """The positions of streams, for a checkpoint; empty without any."""
        return {name: stream.state() for name, stream in self._streams.items()}

    def restore(self, state: Mapping[str, Any]) -> bool:
        """Go on where `state` was given; False when the rows of a stream are not what they were there."""
        self._step = None
        restored = [stream.restore(state[name]) for name, stream in self._streams.items() if name in state]
        return all(restored)

    def _prompt(self, chosen: PromptSet, number: int) -> Prompt:
        if chosen.stream is not None:
            return chosen.stream.take()
        rows = len(chosen.prompts)
        if self._order == "file":
            return chosen.prompts[number % rows]
        return chosen.prompts[row_of(number, rows=rows, seed=self._seed, name=chosen.name)]

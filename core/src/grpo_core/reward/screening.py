"""Rows that a reward cannot judge, found at launch: tests that are missing, or that cannot be read.

A reward object may have `unjudgeable(columns)` (`ScreensRows`). Rows of tasks that it is not meant for are not asked
about. A row that passes may still turn out to have no judgement: what needs more than reading is found while scoring.

Place in the flow: bound rewards + samples → **screened** → the model loads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from grpo_core.errors import RewardError
from grpo_core.plugins.faults import describe
from grpo_core.reward.check import BoundReward
from grpo_core.reward.row_text import row_text
from grpo_core.types import Sample

__all__ = ["ASKED_ROWS", "screen_rows"]

ASKED_ROWS = 100
"""Of each set, spread evenly over it: reading the tests of a row may take a moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Screened:
    """What a reward says of the rows of one set."""

    kind: str
    """Of the set: `training`."""
    asked: int
    """Rows."""
    refused: Sequence[tuple[Sample, str]]
    """Those that it cannot judge, each with the reason."""

    def told(self) -> str:
        """How many, and the first with its reason."""
        sample, reason = self.refused[0]
        share = f"{len(self.refused)} of {self.asked}" if len(self.refused) < self.asked else f"any of {self.asked}"
        return f"cannot judge {share} {self.kind} rows: {reason}; the first is {sample.id}: {row_text(sample)}"


def screen_rows(rewards: Sequence[BoundReward], sets: Mapping[str, Sequence[Sample]]) -> tuple[str, ...]:
    """A sentence for each reward and set (`training`, `evaluation`) with rows that the reward cannot judge.

    Raises `RewardError` for a reward that can judge none of the rows it was asked about, in all sets together.
    """
    warnings: list[str] = []
    for reward in rewards:
        screened = [each for each in _screened(reward, sets) if each.asked]
        refusing = [each for each in screened if each.refused]
        if screened and all(len(each.refused) == each.asked for each in screened):
            raise RewardError(
                f"reward '{reward.planned.name}' {screened[0].told()}",
                hint="Give the rows what it reads (--columns OLD=NEW renames a column), or leave the reward out; rows "
                "with a `task` go only to the rewards meant for it.",
            )
        warnings += [f"reward '{reward.planned.name}' {each.told()}" for each in refusing]
    return tuple(warnings)


def _screened(reward: BoundReward, sets: Mapping[str, Sequence[Sample]]) -> Iterator[_Screened]:
    if not callable(getattr(reward.function, "unjudgeable", None)):
        return
    for kind, samples in sets.items():
        asked = _spread([sample for sample in samples if reward.claims(sample)])
        answers = [(sample, _reason(reward, sample)) for sample in asked]
        refused = [(sample, reason) for sample, reason in answers if reason is not None]
        yield _Screened(kind=kind, asked=len(asked), refused=refused)


def _spread(samples: Sequence[Sample]) -> list[Sample]:
    count = min(len(samples), ASKED_ROWS)
    return [samples[place * len(samples) // count] for place in range(count)]


def _reason(reward: BoundReward, sample: Sample) -> str | None:
    """Why the reward cannot judge the row, on one line; None: it can."""
    columns = {name: sample.columns.get(column) for name, column in reward.binding.columns.items()}
    ask = getattr(reward.function, "unjudgeable", None)
    assert callable(ask)
    try:
        answer = ask(columns)
    except Exception as error:  # noqa: BLE001 - a plugin's code; it is quoted, as an answer is
        return f"its unjudgeable() fails: {describe(error)}"
    return None if answer is None else " ".join(str(answer).split())

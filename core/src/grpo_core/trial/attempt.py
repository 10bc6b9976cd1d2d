"""One reward on completions that a person gives: what it was called with, what it gave, where it ran, how long it took.

Place in the flow: planned reward + sample + texts → bound, scored as one group → **attempt**.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grpo_core.recipe.plan import PlannedReward
from grpo_core.recipe.schema import ScoringSettings
from grpo_core.reward.binding import Answer
from grpo_core.reward.place import place_of
from grpo_core.reward.scoring import Scorer
from grpo_core.trial.scoring import FIRST_STEP, make_group, open_scorer, score
from grpo_core.types import BuildContext, Outcome, RolloutGroup, Sample

__all__ = ["Argument", "Attempt", "attempt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """What the function was called with, by one name."""

    parameter: str
    """In the function."""
    column: str | None
    """The column it got; None: a name of the run."""
    value: object
    """The argument as it was passed: a list of one value a completion, or the run's value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What came of it."""

    planned: PlannedReward
    """Which reward, how it is used."""
    place: str
    """Where it ran."""
    arguments: tuple[Argument, ...]
    """Without `record`; none when the sample is of a task it does not claim."""
    unread: tuple[str, ...]
    """Columns of the row that it does not get."""
    claimed: bool
    """Whether it is meant for the sample's task; it is not called for others."""
    outcomes: tuple[Outcome, ...]
    """One a completion."""
    records: Mapping[str, tuple[object, ...]]
    """What it recorded: name -> one value a completion."""
    start_s: float
    """Seconds to build it, and the process its workers come from."""
    score_s: float
    """Seconds from the completions to their scores; the first of a worker's include its birth."""


def attempt(
    planned: PlannedReward,
    sample: Sample,
    texts: Sequence[str],
    *,
    prompt: str,
    settings: ScoringSettings,
    context: BuildContext,
) -> Attempt:
    """Score texts as completions of one prompt. Raises `RewardError` for a reward that cannot be bound to the row."""
    began = time.perf_counter()
    with open_scorer([planned], settings, sample.columns, context) as scorer:
        ready = time.perf_counter()
        group = make_group(sample, texts, prompt=prompt)
        (scored,) = score(scorer, [group])
        done = time.perf_counter()
        (reward,) = scorer.rewards
        claimed = reward.claims(sample)
        return Attempt(
            planned=planned,
            place=place_of(reward),
            arguments=_arguments(scorer, group) if claimed else (),
            unread=tuple(sorted(set(sample.columns) - set(reward.binding.columns.values()))),
            claimed=claimed,
            outcomes=tuple(scored.outcomes[planned.name]),
            records=dict(scored.records),
            start_s=ready - began,
            score_s=done - ready,
        )


def _arguments(scorer: Scorer, group: RolloutGroup) -> tuple[Argument, ...]:
    """What the binding gives for the group; a run calls the function with exactly this."""
    (reward,) = scorer.rewards
    answers = [Answer(request=group.request, completion=completion) for completion in group.completions]
    values = reward.binding.arguments(answers, FIRST_STEP)
    columns = reward.binding.columns
    return tuple(Argument(parameter=name, column=columns.get(name), value=value) for name, value in values.items())

"""Scores of many completions of many rows: each row's completions are one group.

Place in the flow: completions by row and control → **scored groups** → scores by row and control.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from grpo_core.reward.scoring import Scorer
from grpo_core.trial.scoring import make_group, score
from grpo_core.types import Outcome, RolloutGroup, Sample

__all__ = ["Scores", "Written", "mean_of", "score_grid"]

Written = Sequence[Sequence[str | None]]
"""[rows][controls] The completions; None: the control cannot be made for the row."""
Scores = list[list[Outcome]]
"""[rows][controls] Their scores; None also where there is no completion."""


def score_grid(scorer: Scorer, samples: Sequence[Sample], written: Written) -> Scores:
    """Score the completions of each row with the only reward of a scorer, in one step."""
    groups = [_group(sample, texts) for sample, texts in zip(samples, written, strict=True)]
    scored = iter(score(scorer, filter(lambda group: group.completions, groups)))
    return [
        _spread(texts, next(scored).outcomes.values() if group.completions else ())
        for group, texts in zip(groups, written, strict=True)
    ]


def mean_of(outcomes: Sequence[Outcome]) -> float | None:
    """The mean of the scores there are; None: there are none."""
    numbers = [outcome for outcome in outcomes if isinstance(outcome, float)]
    return statistics.fmean(numbers) if numbers else None


def _group(sample: Sample, texts: Sequence[str | None]) -> RolloutGroup:
    prompt = sample.messages[-1].content
    return make_group(sample, [text for text in texts if text is not None], prompt=prompt)


def _spread(texts: Sequence[str | None], by_reward: Iterable[Sequence[Outcome]]) -> list[Outcome]:
    """The outcomes at the places of their completions."""
    outcomes: Iterator[Outcome] = (outcome for own in by_reward for outcome in own)
    return [None if text is None else next(outcomes) for text in texts]

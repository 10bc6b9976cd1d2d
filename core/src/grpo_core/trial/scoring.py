"""Completions that no model drew, scored as a run scores those that one did.

    texts + sample → RolloutGroup → **the run's own scorer** → ScoredGroup

Without a tokenizer there are no tokens: a completion then has stand-ins, one a word or sign, equal for equal words.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from grpo_core.errors import RewardError, UsageError
from grpo_core.recipe.plan import PlannedReward
from grpo_core.recipe.schema import ScoringSettings
from grpo_core.reward.binding import RunValues
from grpo_core.reward.scoring import Scorer
from grpo_core.types import (
    BuildContext,
    Completion,
    FinishReason,
    RolloutGroup,
    RolloutRequest,
    Sample,
    SamplingParams,
    ScoredGroup,
)

__all__ = ["FIRST_STEP", "make_group", "open_scorer", "score", "stand_in_ids"]

FIRST_STEP = RunValues(step=1, epoch=0.0, progress=1.0, max_steps=1)
"""When it is, for rewards that ask: the only step of a run."""

_PIECE = re.compile(r"\w+|[^\w\s]")


@contextmanager
def open_scorer(
    rewards: Sequence[PlannedReward], settings: ScoringSettings, columns: Iterable[str], context: BuildContext
) -> Iterator[Scorer]:
    """Build and bind the rewards, and end their workers afterwards.

    Raises as `Scorer`; a reward that cannot be bound is a fault of who asked, since nothing has been scored.
    """
    try:
        scorer = Scorer(rewards, settings, columns, context)
    except RewardError as error:
        error.exit_code = UsageError.exit_code
        raise
    try:
        yield scorer
    finally:
        scorer.close()


def score(scorer: Scorer, groups: Iterable[RolloutGroup], moment: RunValues = FIRST_STEP) -> tuple[ScoredGroup, ...]:
    """Score the groups as one step, in their order; any number of scores may fail."""
    scoring = scorer.begin(step=moment.step, epoch=moment.epoch, progress=moment.progress, max_steps=moment.max_steps)
    for group in groups:
        scoring.add(group)
    return scoring.finish(watched=False)


def make_group(
    sample: Sample,
    texts: Sequence[str],
    *,
    prompt: str = "",
    token_ids: Sequence[Sequence[int]] | None = None,
    finish_reasons: Sequence[FinishReason] | None = None,
) -> RolloutGroup:
    """The texts as completions of one prompt; `prompt` is its rendered text."""
    ids = token_ids if token_ids is not None else [stand_in_ids(text) for text in texts]
    reasons = finish_reasons or [FinishReason.STOP] * len(texts)
    longest = max((len(each) for each in ids), default=0)
    return RolloutGroup(
        request=RolloutRequest(
            sample=sample,
            prompt_text=prompt,
            prompt_ids=(),
            n=len(texts),
            params=SamplingParams(max_tokens=max(longest, 1)),
            seed=0,
        ),
        completions=tuple(
            Completion(text=text, token_ids=tuple(own), sampling_logprobs=(0.0,) * len(own), finish_reason=reason)
            for text, own, reason in zip(texts, ids, reasons, strict=True)
        ),
    )


def stand_in_ids(text: str) -> tuple[int, ...]:
    """[T] A number for each word or sign."""
    return tuple(zlib.crc32(piece.encode("utf-8", "surrogatepass")) for piece in _PIECE.findall(text))

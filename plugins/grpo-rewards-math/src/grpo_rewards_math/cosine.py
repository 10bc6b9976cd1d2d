"""`cosine`: correctness scaled by the completion's length in tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence

from grpo_core.api import BuildContext
from grpo_rewards_math.accuracy.reward import math_reward
from grpo_rewards_math.cosine_options import CosineOptions

__all__ = ["make", "scaled"]


class Cosine:
    """The reward as a callable, with the score of an answer that takes too long to evaluate."""

    def __init__(self, options: CosineOptions) -> None:
        self._options = options
        self.over_budget_score = min(options.wrong_short, options.wrong_long)
        """Hanging the judge must not pay more than being wrong."""

    def __call__(
        self,
        completions: Sequence[str],
        completion_ids: Sequence[Sequence[int]],
        solution: Sequence[object],
        prompts: Sequence[str] | None = None,
    ) -> list[float | None]:
        """A score between the options' ends; None where `math_reward` has no readable reference."""
        correct = math_reward(completions, solution, prompts)
        pairs = zip(correct, completion_ids, strict=True)
        return [None if score is None else scaled(score == 1.0, len(ids), self._options) for score, ids in pairs]


def make(options: CosineOptions, context: BuildContext) -> Cosine:
    """The reward of these options."""
    return Cosine(options)


def scaled(is_correct: bool, tokens: int, options: CosineOptions) -> float:
    """long + (short - long) (1 + cos(pi t)) / 2, with t the share of `max_len`, at most 1.

    Without that bound the cosine comes up again, and a completion of twice the length is paid like the shortest.
    Source: Yeo et al. 2025, arXiv 2502.03373, section 4; the default ends are those of TRL and open-r1.
    """
    short, long = (
        (options.correct_short, options.correct_long) if is_correct else (options.wrong_short, options.wrong_long)
    )
    share = min(tokens / options.max_len, 1.0)
    return long + (short - long) * (1 + math.cos(math.pi * share)) / 2

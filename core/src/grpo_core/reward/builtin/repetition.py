"""`repetition`: a penalty for n-grams that come again.

Counted over token ids: splitting text at blanks sees no repetition in languages that have none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grpo_core.reward.builtin.options import RepetitionOptions
from grpo_core.types import BuildContext

__all__ = ["make"]


def make(options: RepetitionOptions, context: BuildContext) -> Callable[..., list[float]]:
    """The penalty max_penalty * (1 - distinct / all) over the completion's n-grams; 0.0 when it is shorter than one.

    Source: Yeo et al. 2025 (arXiv 2502.03373), appendix, as a share of n-grams.
    """

    def repetition(completion_ids: Sequence[Sequence[int]]) -> list[float]:
        return [_penalty(ids, options) for ids in completion_ids]

    return repetition


def _penalty(ids: Sequence[int], options: RepetitionOptions) -> float:
    total = len(ids) - options.ngram_size + 1
    if total < 1:
        return 0.0
    distinct = {tuple(ids[start : start + options.ngram_size]) for start in range(total)}
    return options.max_penalty * (1 - len(distinct) / total)

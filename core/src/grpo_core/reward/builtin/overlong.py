"""`soft_overlong`: a penalty that grows over the last tokens before the length limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grpo_core.reward.builtin.options import SoftOverlongOptions
from grpo_core.types import BuildContext

__all__ = ["make"]


def make(options: SoftOverlongOptions, context: BuildContext) -> Callable[..., list[float]]:
    """0 up to max_length - cache_length tokens, then linear to -1 at max_length, and -1 beyond.

    Source: DAPO, arXiv 2503.14476, equation 13.
    """

    def soft_overlong(completion_ids: Sequence[Sequence[int]]) -> list[float]:
        return [_penalty(len(ids), options) for ids in completion_ids]

    return soft_overlong


def _penalty(length: int, options: SoftOverlongOptions) -> float:
    over = length - (options.max_length - options.cache_length)
    return -min(max(over / options.cache_length, 0.0), 1.0)

"""The top-entropy filter: only the tokens at which the policy was least sure enter the policy term (arXiv 2506.01939).

One threshold for the whole step, from the entropies before its first update, so that neither micro-batches nor ranks
nor passes change which tokens train. Plain Python: it runs where the step is planned, not in the trainer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

__all__ = ["counted_entropies", "top_entropy_masks", "top_entropy_threshold"]


def top_entropy_threshold(entropies: Iterable[float], share: float) -> float:
    """The least entropy, in nats, that is among the top `share` of all tokens in the loss of a step.

    Of n tokens at least ceil(share * n) reach it. Ties reach it together, so it may be more; this keeps the result
    independent of order. -inf when there is no token.
    """
    ordered = sorted(entropies, reverse=True)
    if not ordered:
        return -math.inf
    # 0.1 * 30 is 3.0000000000000004 in floating point: without the slack, ceil would keep a fourth token.
    kept = max(1, math.ceil(share * len(ordered) - 1e-9))
    return ordered[kept - 1]


def counted_entropies(entropies: Sequence[Sequence[Sequence[float]]], in_loss: Sequence[Sequence[bool]]) -> list[float]:
    """Those of the tokens in the loss, out of [groups][members][T]: what the threshold is found among."""
    return [
        entropy
        for group, flags in zip(entropies, in_loss, strict=True)
        for member, flag in zip(group, flags, strict=True)
        if flag
        for entropy in member
    ]


def top_entropy_masks(
    entropies: Sequence[Sequence[Sequence[float]]], threshold: float
) -> tuple[tuple[tuple[bool, ...], ...], ...]:
    """[groups][members][T] Which tokens enter the policy term, from entropies of that shape.

    The masks of members that are not in the loss mean nothing.
    """
    return tuple(tuple(tuple(entropy >= threshold for entropy in member) for member in group) for group in entropies)

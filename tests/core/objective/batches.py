"""Micro-batches for the tests of this folder. Shapes: B completions, T tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from grpo_core.objective.loss import Denominators, TokenInputs

LOSSES = ("grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "gspo")


def prefix_mask(lengths: Sequence[int], width: int | None = None) -> Tensor:
    """[B, T] True for the first `lengths[i]` tokens of row i."""
    width = max(lengths) if width is None else width
    return torch.arange(width)[None, :] < torch.tensor(lengths)[:, None]


def rows(*values: Sequence[float], fill: float = float("nan")) -> Tensor:
    """[B, T] fp64 from rows of different lengths; what is missing is NaN, so that a leak shows."""
    width = max(map(len, values))
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in values], dtype=torch.float64)


def two_completions(
    advantages: Sequence[float] = (1.0, -2.0), *, on_policy: bool = False, requires_grad: bool = True
) -> TokenInputs:
    """Completion 1: two tokens, probabilities 1/2 and 1/4, ratios 3/2 and 1/2. Completion 2: one, 1/10, ratio 3/2.

    The sampler agrees with the old policy, and every entropy is 1.
    """
    logprobs_BT = rows([0.5, 0.25], [0.1]).log()
    old_BT = logprobs_BT if on_policy else logprobs_BT - rows([1.5, 0.5], [1.5]).log()
    return TokenInputs(
        logprobs_BT=logprobs_BT.clone().requires_grad_(requires_grad),
        old_logprobs_BT=None if on_policy else old_BT,
        sampling_logprobs_BT=old_BT,
        entropies_BT=torch.ones_like(logprobs_BT),
        advantages_B=torch.tensor(advantages, dtype=torch.float64),
        mask_BT=prefix_mask([2, 1]),
    )


TWO_COMPLETIONS = Denominators(sequences=2, tokens=3, max_completion_tokens=4)
"""Of an update made of `two_completions` alone."""

"""Weights that correct for the engine that sampled being numerically another model than the one that is trained.

The weight of a token is w = exp(trainer - sampler), both log-probabilities in the same space and from the same weights
(before the first update of the step), bounded by `cap`:

    token_truncate     min(w, cap)                      (truncated importance sampling, arXiv 1802.01561, V-trace's ρ)
    token_mask         w where 1/cap <= w <= cap, else 0
    sequence_truncate  min(g, cap), g = exp(mean over the completion of trainer - sampler)
    sequence_mask      g where 1/cap <= g <= cap, else 0
    off                1

g is the geometric mean, not the product: a product over hundreds of tokens is far from 1 for harmless gaps, so that a
cap on it punishes length. What is not here: the ratio between updates of one step (surrogate.py).

Shapes: B completions, T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from grpo_core.recipe.schema import ImportanceSettings

__all__ = ["Importance", "importance", "masked_mean"]

MAX_GAP = 20.0
"""In nats. exp(20) is 5e8, above any sensible cap, and far from where exp overflows fp32 (88)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Importance:
    """The correction of a micro-batch, without gradient; 1 (gap: 0) outside the mask."""

    weights_BT: Tensor
    """What the policy term is multiplied by."""
    raw_BT: Tensor
    """The ratio before `cap`: of each token, or for `sequence_*` the geometric mean of its completion."""
    gaps_BT: Tensor
    """trainer - sampler of each token, in nats."""
    bounded_BT: Tensor
    """bool: `cap` changed the weight."""


@torch.no_grad()
def importance(trainer_BT: Tensor, sampler_BT: Tensor, mask_BT: Tensor, settings: ImportanceSettings) -> Importance:
    """Weights from log-probabilities of trainer and sampler in one space; `mask_BT` is True for tokens in the loss."""
    gaps_BT = torch.where(mask_BT, trainer_BT - sampler_BT, 0.0)
    level_BT = gaps_BT
    if settings.correction.startswith("sequence"):
        level_BT = torch.where(mask_BT, masked_mean(gaps_BT, mask_BT), 0.0)
    raw_BT = level_BT.clamp(-MAX_GAP, MAX_GAP).exp()
    weights_BT = _bounded(raw_BT, settings)
    return Importance(
        weights_BT=weights_BT,
        raw_BT=raw_BT,
        gaps_BT=gaps_BT,
        bounded_BT=(weights_BT != raw_BT) if settings.correction != "off" else torch.zeros_like(mask_BT),
    )


def _bounded(raw_BT: Tensor, settings: ImportanceSettings) -> Tensor:
    match settings.correction:
        case "token_truncate" | "sequence_truncate":
            return raw_BT.clamp(max=settings.cap)
        case "token_mask" | "sequence_mask":
            inside_BT = (raw_BT >= 1 / settings.cap) & (raw_BT <= settings.cap)
            return torch.where(inside_BT, raw_BT, 0.0)
        case "off":
            return torch.ones_like(raw_BT)


def masked_mean(values_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """[B, 1] The mean over a row's masked-in tokens; 0 for a row without any. Values outside must be finite."""
    counts_B1 = mask_BT.sum(1, keepdim=True).clamp(min=1)
    return (values_BT * mask_BT).sum(1, keepdim=True) / counts_B1

"""The policy term of each token: the ratio, and what a loss makes of it.

What it does not do: weigh tokens against each other (loss.py divides) or correct for the sampler (importance.py).

Shapes: B completions, T tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

from grpo_core.objective.importance import masked_mean
from grpo_core.objective.presets import Loss, RatioLevel

__all__ = ["bounded_tokens", "cut_tokens", "policy_ratio", "surrogate"]

MAX_LOG_RATIO = 20.0
"""In nats. exp overflows fp32 at 88, and an infinite ratio times an advantage of 0 is NaN; no cap is near 5e8."""


def policy_ratio(log_ratio_BT: Tensor, mask_BT: Tensor, level: RatioLevel) -> Tensor:
    """[B, T] exp(log_ratio_BT), or for `sequence` of its mean over each completion; 1 outside the mask.

    `log_ratio_BT` is policy - old policy, 0 outside the mask.
    """
    if level == "sequence":
        log_ratio_BT = masked_mean(log_ratio_BT, mask_BT) * mask_BT
    return log_ratio_BT.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()


def surrogate(ratio_BT: Tensor, logprobs_BT: Tensor, advantages_BT: Tensor, loss: Loss) -> Tensor:
    """[B, T] What each token adds to the policy term, to be minimised. Formulas: presets.py."""
    match loss.surrogate:
        case "clip":
            return _clip(ratio_BT, advantages_BT, loss)
        case "cispo":
            return -ratio_BT.detach().clamp(loss.lowest, loss.highest) * advantages_BT * logprobs_BT
        case "sapo":
            return _sapo(ratio_BT, advantages_BT, loss)


def cut_tokens(ratio_BT: Tensor, advantages_BT: Tensor, loss: Loss) -> tuple[Tensor, Tensor]:
    """[B, T] bool each: the tokens whose gradient the clip removes, below and above.

    Low ratios of bad completions, high ratios of good ones, and those of bad ones above `dual_clip`. Only `clip`
    removes any: `cispo` bounds a weight and keeps the gradient, `sapo` bounds nothing.
    """
    if loss.surrogate != "clip":
        none_BT = torch.zeros_like(ratio_BT, dtype=torch.bool)
        return none_BT, none_BT
    good_BT, bad_BT = advantages_BT > 0, advantages_BT < 0
    high_BT = good_BT & (ratio_BT > loss.highest)
    if loss.dual_clip is not None:
        high_BT = high_BT | (bad_BT & (ratio_BT > loss.dual_clip))
    return bad_BT & (ratio_BT < loss.lowest), high_BT


def bounded_tokens(ratio_BT: Tensor, advantages_BT: Tensor, loss: Loss) -> Tensor | None:
    """[B, T] bool: the tokens with a gradient whose ratio `cispo` bounds; None for losses that bound no weight."""
    if loss.surrogate != "cispo":
        return None
    return (advantages_BT != 0) & ((ratio_BT < loss.lowest) | (ratio_BT > loss.highest))


def _clip(ratio_BT: Tensor, advantages_BT: Tensor, loss: Loss) -> Tensor:
    """-min(r A, clip(r) A); with dual clip (arXiv 1912.09729) for A < 0: -max(min(r A, clip(r) A), c A)."""
    gain_BT = torch.minimum(ratio_BT * advantages_BT, ratio_BT.clamp(loss.lowest, loss.highest) * advantages_BT)
    if loss.dual_clip is not None:
        floor_BT = loss.dual_clip * advantages_BT
        gain_BT = torch.where(advantages_BT < 0, torch.maximum(gain_BT, floor_BT), gain_BT)
    return -gain_BT


def _sapo(ratio_BT: Tensor, advantages_BT: Tensor, loss: Loss) -> Tensor:
    """4/τ makes the slope at r = 1 that of the ratio itself, so that on-policy all surrogates have one gradient."""
    temperature_BT = torch.full_like(ratio_BT, loss.temperature_negative)
    temperature_BT = temperature_BT.masked_fill(advantages_BT > 0, loss.temperature_positive)
    return -torch.sigmoid(temperature_BT * (ratio_BT - 1)) * 4 / temperature_BT * advantages_BT

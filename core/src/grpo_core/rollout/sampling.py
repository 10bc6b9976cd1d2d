"""Draws one token for each sequence from its logits, and says how likely the policy found it.

The log-probability is that of softmax(logits / temperature), before penalty and filters (the space `tempered`): it is
what the trainer trains. Filters act in the order top-k, top-p, min-p.

Shapes: B sequences, V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from grpo_core.types import SamplingParams

__all__ = ["Draw", "draw"]

BLOCK_TOKENS = 128
LARGEST_UNIFORM = 1.0 - 2.0**-53


@dataclass(frozen=True, slots=True)
class Draw:
    """One token a sequence."""

    tokens_B: Tensor
    """int64."""
    logprobs_B: Tensor
    """fp32, natural log, of softmax(logits / temperature); of softmax(logits) when greedy. Not finite exactly where the
    logits were NaN, infinite or all -inf."""


def draw(
    logits_BV: Tensor,
    params: SamplingParams,
    uniforms_B: Tensor,
    seen_BV: Tensor | None = None,
    never_V: Tensor | None = None,
) -> Draw:
    """Draw by inverse CDF from `uniforms_B` (fp64 in [0, 1)); a token of probability 0 is never drawn.

    `seen_BV` (bool) marks tokens that occur in prompt or completion; used with a repetition penalty only. `never_V`
    (bool) marks tokens that are not drawn whatever their logit: a filter, before all others.
    """
    scores_BV = logits_BV.float()
    temperature = 1.0 if params.greedy else params.temperature
    largest_B1 = scores_BV.amax(-1, keepdim=True)
    # The largest is subtracted before the division rounds: an offset of all logits changes nothing.
    weights_BV = (scores_BV - largest_B1).div_(temperature).exp_()
    totals_B1 = weights_BV.sum(-1, keepdim=True)
    chosen_from_BV = scores_BV
    if params.repetition_penalty != 1.0 and seen_BV is not None:
        chosen_from_BV = _penalised(scores_BV, seen_BV, params.repetition_penalty)
        weights_BV = (chosen_from_BV - chosen_from_BV.amax(-1, keepdim=True)).div_(temperature).exp_()
    if never_V is not None:
        chosen_from_BV = chosen_from_BV.masked_fill(never_V, -math.inf)
        weights_BV = (chosen_from_BV - chosen_from_BV.amax(-1, keepdim=True)).div_(temperature).exp_()
    if params.greedy:
        tokens_B1 = chosen_from_BV.argmax(-1, keepdim=True)
    else:
        # Beyond the vocabulary only where the weights are NaN; the log-probability then tells.
        tokens_B1 = _inverse_cdf(_filtered(weights_BV, params), uniforms_B).clamp_(max=logits_BV.shape[-1] - 1)
    logprobs_B1 = (scores_BV.gather(-1, tokens_B1) - largest_B1).div_(temperature) - totals_B1.log()
    return Draw(tokens_B1.squeeze(-1), logprobs_B1.squeeze(-1))


def _penalised(scores_BV: Tensor, seen_BV: Tensor, penalty: float) -> Tensor:
    """Scores of seen tokens divided by the penalty where positive, multiplied where negative (CTRL, Keskar et al.
    2019, section 4.1). Commutes with the temperature."""
    less_likely_BV = torch.where(scores_BV > 0, scores_BV / penalty, scores_BV * penalty)
    return torch.where(seen_BV, less_likely_BV, scores_BV)


def _filtered(weights_BV: Tensor, params: SamplingParams) -> Tensor:
    """Weights, the largest of each row being 1, with those of left-out tokens set to 0. Ties at top-k's border stay."""
    if 0 < params.top_k < weights_BV.shape[-1]:
        kth_B1 = weights_BV.topk(params.top_k).values[:, -1:]
        weights_BV = weights_BV.masked_fill(weights_BV < kth_B1, 0.0)
    if params.top_p < 1.0:
        sorted_BV, order_BV = weights_BV.sort(descending=True, stable=True)
        before_BV = sorted_BV.cumsum(-1, dtype=torch.float64) - sorted_BV
        left_out_BV = before_BV >= params.top_p * sorted_BV.sum(-1, keepdim=True, dtype=torch.float64)
        left_out_BV[:, 0] = False
        weights_BV = weights_BV.masked_fill(left_out_BV.scatter(-1, order_BV, left_out_BV), 0.0)
    if params.min_p > 0.0:
        weights_BV = weights_BV.masked_fill(weights_BV < params.min_p, 0.0)
    return weights_BV


def _inverse_cdf(weights_BV: Tensor, uniforms_B: Tensor) -> Tensor:
    """[B, 1] The first token at which the running sum exceeds its share of the total; its own weight is above 0.

    In two stages, first the block of tokens and then the token in it: most of a large vocabulary is summed and not
    scanned.
    """
    if missing := -weights_BV.shape[-1] % BLOCK_TOKENS:
        weights_BV = pad(weights_BV, (0, missing))
    blocks_BNS = weights_BV.view(len(weights_BV), -1, BLOCK_TOKENS)
    block_B1, inside_B1 = _pick(blocks_BNS.sum(-1), uniforms_B[:, None])
    block_B1S = blocks_BNS.gather(1, block_B1[..., None].expand(-1, -1, BLOCK_TOKENS))
    token_B1, _ = _pick(block_B1S.squeeze(1), inside_B1)
    return block_B1 * BLOCK_TOKENS + token_B1


def _pick(weights_BN: Tensor, uniforms_B1: Tensor) -> tuple[Tensor, Tensor]:
    """[B, 1] An index with weight above 0, and how far into its weight the uniform number points, in [0, 1).

    In fp64, where a share of the total by a number below 1 stays below the total.
    """
    cdf_BN = weights_BN.cumsum(-1, dtype=torch.float64)
    shares_B1 = uniforms_B1 * cdf_BN[:, -1:]
    index_B1 = torch.searchsorted(cdf_BN, shares_B1, right=True).clamp_(max=weights_BN.shape[-1] - 1)
    weights_B1 = weights_BN.gather(-1, index_B1).double()
    inside_B1 = 1.0 - (cdf_BN.gather(-1, index_B1) - shares_B1) / weights_B1
    return index_B1, inside_B1.clamp_(0.0, LARGEST_UNIFORM)

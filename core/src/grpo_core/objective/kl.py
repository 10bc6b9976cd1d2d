"""Estimators of the KL divergence of the policy from the reference model, from sampled tokens.

With d = log policy - log reference of a token that the policy drew (J. Schulman, "Approximating KL divergence", 2020):

    k1 = d                   unbiased, may be negative
    k2 = d² / 2              biased as a value; its gradient is unbiased for KL(policy || reference)
    k3 = exp(-d) - 1 + d     unbiased and never negative; its gradient is that of KL(reference || policy)

`token_kl` is for tensors in the loss, `kl_penalty` for plain numbers in the reward.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from torch import Tensor

__all__ = ["KlEstimator", "kl_penalty", "token_kl"]

KlEstimator = Literal["k1", "k2", "k3"]

MAX_LOG_RATIO = 20.0
"""exp(20) is 5e8: beyond, k3 of one token would outweigh a whole update, and exp overflows fp32 at 88. No trained
policy comes near: a token that the policy drew with probability 0.5 would need one of 1e8 under the reference."""


def token_kl(policy_logprobs: Tensor, reference_logprobs: Tensor, estimator: KlEstimator) -> Tensor:
    """The estimate of each token, shaped like its arguments, differentiable in `policy_logprobs`."""
    d = (policy_logprobs - reference_logprobs).clamp(min=-MAX_LOG_RATIO)
    match estimator:
        case "k1":
            return d
        case "k2":
            return d.square() / 2
        case "k3":
            return (-d).expm1() + d


def kl_penalty(policy_logprobs: Sequence[float], reference_logprobs: Sequence[float], estimator: KlEstimator) -> float:
    """The estimate summed over one completion; times beta it is what `kl_in: reward` takes off the total."""
    pairs = zip(policy_logprobs, reference_logprobs, strict=True)
    return math.fsum(_estimate(max(policy - reference, -MAX_LOG_RATIO), estimator) for policy, reference in pairs)


def _estimate(d: float, estimator: KlEstimator) -> float:
    match estimator:
        case "k1":
            return d
        case "k2":
            return d * d / 2
        case "k3":
            return math.expm1(-d) + d

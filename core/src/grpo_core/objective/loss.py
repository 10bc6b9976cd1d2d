"""The whole loss of a micro-batch: policy term, KL, entropy bonus, and the sums for its metrics.

Adding up `loss` over all micro-batches of all ranks gives the loss of the optimiser update: it is divided by the
update's own denominators, and by nothing else anywhere. (A wrapper that averages gradients over ranks, as DDP does,
needs its loss multiplied by the world size.)

Place in the flow: chunked_logprobs → **compute_loss** → backward. Shapes: B completions, T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from grpo_core.errors import TrainerError
from grpo_core.objective.importance import Importance, importance
from grpo_core.objective.kl import token_kl
from grpo_core.objective.presets import Denominator, Loss, resolve
from grpo_core.objective.sums import MetricSums, TokenMetrics, measure
from grpo_core.objective.surrogate import bounded_tokens, cut_tokens, policy_ratio, surrogate
from grpo_core.recipe.schema import ObjectiveSettings
from grpo_core.types import TrainBatch

__all__ = ["Denominators", "LossResult", "TokenInputs", "acts_without_advantage", "compute_loss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenInputs:
    """A micro-batch as the loss sees it. Padding and rows that are not in the loss may hold anything, NaN included."""

    logprobs_BT: Tensor
    """Of the policy, softmax(logits / temperature), with gradient."""
    sampling_logprobs_BT: Tensor
    """From the rollout engine, in its own space."""
    entropies_BT: Tensor
    """Of the policy, in nats; with gradient when there is an entropy bonus."""
    advantages_B: Tensor
    """One for each completion."""
    mask_BT: Tensor
    """bool: tokens of completions that are in the loss."""
    old_logprobs_BT: Tensor | None = None
    """Before the first update of the step. None: this is the only update, and the detached current ones are these."""
    reference_logprobs_BT: Tensor | None = None
    """Of the reference model; None: no KL term."""
    correction_logprobs_BT: Tensor | None = None
    """The trainer's own before the first update, in the sampler's space. None: that is the policy's own space."""
    policy_mask_BT: Tensor | None = None
    """bool, False: the token is left out of the policy term, and of nothing else. None: all count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Denominators:
    """Of the whole optimiser update, over all its micro-batches and ranks."""

    sequences: int
    """Completions in the loss."""
    tokens: int
    """Their tokens."""
    max_completion_tokens: int
    """The length limit of a completion."""

    @classmethod
    def of(cls, batch: TrainBatch) -> Denominators:
        """Those that a batch carries."""
        return cls(sequences=batch.sequences, tokens=batch.tokens, max_completion_tokens=batch.max_completion_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossResult:
    """What a micro-batch adds to the update."""

    loss: Tensor
    """Scalar with gradient; it always hangs on `logprobs_BT`, be it with a gradient of 0."""
    sums: MetricSums
    """Its part of the metrics; `+` joins the parts of micro-batches."""


def compute_loss(inputs: TokenInputs, denominators: Denominators, settings: ObjectiveSettings) -> LossResult:
    """The micro-batch's part of: policy term + beta KL - entropy bonus, all over the same denominator.

    The importance weight multiplies the policy term only, as a constant, and `policy_mask_BT` leaves tokens out of it
    only: KL and entropy are about the policy everywhere, whoever sampled. Raises `TrainerError` when a term that the
    settings ask for lacks its input.
    """
    _check(inputs, settings)
    inputs, loss = _cleaned(inputs), resolve(settings)
    logprobs_BT, mask_BT = inputs.logprobs_BT, inputs.mask_BT
    old_BT = logprobs_BT.detach() if inputs.old_logprobs_BT is None else inputs.old_logprobs_BT
    trainer_BT = old_BT if inputs.correction_logprobs_BT is None else inputs.correction_logprobs_BT
    advantages_BT = torch.where(mask_BT, inputs.advantages_B[:, None], 0.0)
    ratio_BT = policy_ratio(logprobs_BT - old_BT, mask_BT, loss.ratio)
    weights = importance(trainer_BT, inputs.sampling_logprobs_BT, mask_BT, settings.importance)

    terms_BT = surrogate(ratio_BT, logprobs_BT, advantages_BT, loss) * weights.weights_BT
    if inputs.policy_mask_BT is not None:
        terms_BT = torch.where(inputs.policy_mask_BT, terms_BT, 0.0)
    if inputs.reference_logprobs_BT is not None and settings.beta > 0 and settings.kl_in == "loss":
        kl_BT = token_kl(logprobs_BT, inputs.reference_logprobs_BT, settings.kl_estimator)
        terms_BT = terms_BT + settings.beta * kl_BT
    if settings.entropy_bonus > 0:
        terms_BT = terms_BT - settings.entropy_bonus * inputs.entropies_BT
    total = (terms_BT / _denominators(mask_BT, loss.denominator, denominators)).sum()
    metrics = _token_metrics(inputs, ratio_BT, advantages_BT, weights, loss)
    return LossResult(loss=total, sums=measure(total, metrics))


def acts_without_advantage(settings: ObjectiveSettings) -> bool:
    """Whether a completion whose advantage is 0 has a gradient: KL and entropy act on all tokens, and every surrogate
    is linear in the advantage."""
    return settings.entropy_bonus > 0 or (settings.beta > 0 and settings.kl_in == "loss")


def _check(inputs: TokenInputs, settings: ObjectiveSettings) -> None:
    if settings.beta > 0 and settings.kl_in == "loss" and inputs.reference_logprobs_BT is None:
        raise TrainerError(
            f"objective.beta is {settings.beta:g}, and the batch has no reference log-probabilities",
            hint="compute them with the reference model before the first update of the step, or set beta to 0",
        )
    if settings.entropy_bonus > 0 and inputs.logprobs_BT.requires_grad and not inputs.entropies_BT.requires_grad:
        raise TrainerError(
            f"objective.entropy_bonus is {settings.entropy_bonus:g}, and the entropies carry no gradient",
            hint="call chunked_logprobs with with_entropy_grad=True, or set entropy_bonus to 0",
        )


def _cleaned(inputs: TokenInputs) -> TokenInputs:
    """Log-probabilities and entropies, 0 outside the mask: NaN * 0 is NaN, in the backward pass too."""
    mask_BT = inputs.mask_BT

    def masked(values_BT: Tensor) -> Tensor:
        return torch.where(mask_BT, values_BT, 0.0)

    def masked_or_none(values_BT: Tensor | None) -> Tensor | None:
        return None if values_BT is None else masked(values_BT)

    return replace(
        inputs,
        logprobs_BT=masked(inputs.logprobs_BT),
        sampling_logprobs_BT=masked(inputs.sampling_logprobs_BT),
        entropies_BT=masked(inputs.entropies_BT),
        old_logprobs_BT=masked_or_none(inputs.old_logprobs_BT),
        reference_logprobs_BT=masked_or_none(inputs.reference_logprobs_BT),
        correction_logprobs_BT=masked_or_none(inputs.correction_logprobs_BT),
    )


@torch.no_grad()
def _token_metrics(
    inputs: TokenInputs, ratio_BT: Tensor, advantages_BT: Tensor, weights: Importance, loss: Loss
) -> TokenMetrics:
    reference_BT = inputs.reference_logprobs_BT
    in_term_BT = weights.weights_BT != 0  # a token that a mask left out has no gradient for the clip to remove
    if inputs.policy_mask_BT is not None:
        in_term_BT = in_term_BT & inputs.policy_mask_BT
    cut_low_BT, cut_high_BT = cut_tokens(ratio_BT, advantages_BT, loss)
    bounded_BT = bounded_tokens(ratio_BT, advantages_BT, loss)
    return TokenMetrics(
        mask_BT=inputs.mask_BT,
        ratio_BT=ratio_BT,
        cut_low_BT=cut_low_BT & in_term_BT,
        cut_high_BT=cut_high_BT & in_term_BT,
        bounded_ratio_BT=None if bounded_BT is None else bounded_BT & in_term_BT,
        entropies_BT=inputs.entropies_BT,
        kl_BT=None if reference_BT is None else token_kl(inputs.logprobs_BT, reference_BT, "k3"),
        gaps_BT=weights.gaps_BT,
        raw_weights_BT=weights.raw_BT,
        bounded_BT=weights.bounded_BT,
    )


def _denominators(mask_BT: Tensor, denominator: Denominator, update: Denominators) -> Tensor | int:
    """[B, 1] or one number: what the tokens of a row are divided by; 1 where there is nothing to divide."""
    match denominator:
        case "sequence":
            return mask_BT.sum(1, keepdim=True).clamp(min=1) * max(1, update.sequences)
        case "token":
            return max(1, update.tokens)
        case "constant":
            return max(1, update.sequences * update.max_completion_tokens)

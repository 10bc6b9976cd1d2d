"""What a trainer gets for one optimiser update, grouped: each prompt once, its completions beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from grpo_core.types.rollout import LogprobSpace
from grpo_core.types.sample import ImageRef

__all__ = ["LogprobSpace", "TokenStats", "TrainBatch", "TrainGroup", "TrainMember", "UpdateReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainMember:
    """One completion as the update sees it."""

    token_ids: tuple[int, ...]
    """[T] The completion's tokens."""
    advantage: float
    """How much better than expected it was; the same for each of its tokens."""
    sampling_logprobs: tuple[float, ...]
    """[T] From the rollout engine, in the batch's `logprob_space`."""
    in_loss: bool = True
    """False: it has no total, or it is truncated and such completions are masked. It then adds to no term of the
    loss and to no denominator, and its advantage is not used."""
    old_logprobs: tuple[float, ...] | None = None
    """[T] The trainer's own log-probabilities before the first update of the step, of softmax(logits / temperature).
    None: there is one update, so the detached current ones are these."""
    reference_logprobs: tuple[float, ...] | None = None
    """[T] Of the reference model, of softmax(logits / temperature); None when no KL term needs them."""
    correction_logprobs: tuple[float, ...] | None = None
    """[T] The trainer's own log-probabilities before the first update, in the batch's `logprob_space`; None where
    `old_logprobs` is None, or where the two spaces are the same."""
    policy_mask: tuple[bool, ...] | None = None
    """[T] False: the token is left out of the policy term (not of KL or entropy, and not of the denominator), as the
    top-entropy filter asks. None: all tokens count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainGroup:
    """The completions of one prompt that take part in an update."""

    prompt_ids: tuple[int, ...]
    """[P] The prompt's tokens, once; those of its images are among them."""
    members: tuple[TrainMember, ...]
    """The completions; where a group is split over ranks or minibatches, a part of them."""
    images: tuple[ImageRef, ...] = ()
    """The prompt's images, once, in the order of their tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainBatch:
    """Everything one optimiser update needs. The denominators are those of the whole update over all ranks, so that
    neither micro-batches nor world size change the gradient."""

    groups: tuple[TrainGroup, ...]
    """This rank's share of the update."""
    step: int
    """The step, from 1."""
    temperature: float
    """The policy is softmax(logits / temperature). 1.0 for rollouts that were greedy."""
    logprob_space: LogprobSpace
    """Of the members' `sampling_logprobs`: `raw`, or `tempered`."""
    sequences: int
    """Completions of the whole update that are in the loss."""
    tokens: int
    """Their tokens."""
    max_completion_tokens: int
    """The length limit of a completion, the constant of Dr. GRPO's denominator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenStats:
    """Per-token numbers of a batch under one model, in the order of groups and members."""

    logprobs: tuple[tuple[tuple[float, ...], ...], ...]
    """[groups][members][T] Of softmax(logits / temperature)."""
    space_logprobs: tuple[tuple[tuple[float, ...], ...], ...] | None
    """[groups][members][T] In the batch's `logprob_space`; None when that is the same."""
    entropies: tuple[tuple[tuple[float, ...], ...], ...]
    """[groups][members][T] Entropy in nats of softmax(logits / temperature)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReport:
    """What an optimiser update says about itself."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    """Documented names (docs/metrics.md) -> values over the whole update."""

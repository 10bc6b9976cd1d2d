"""From scored groups to what the trainer gets: this rank's share of the step, cut into optimiser updates.

Denominators are those of a whole update over all ranks, and a threshold is one over the whole step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from grpo_core.advantage.estimate import estimate
from grpo_core.errors import RolloutError
from grpo_core.loop.exchange import move
from grpo_core.loop.facts import Facts, Known
from grpo_core.loop.guards import check_sampler_gap
from grpo_core.loop.parts import Parts
from grpo_core.loop.placeholders import without_placeholders
from grpo_core.loop.rollout import sampling_params
from grpo_core.loop.shares import Piece, balance
from grpo_core.objective.entropy import counted_entropies, top_entropy_masks, top_entropy_threshold
from grpo_core.objective.kl import KlEstimator, kl_penalty
from grpo_core.objective.loss import acts_without_advantage
from grpo_core.recipe.schema import Recipe
from grpo_core.types import (
    Completion,
    LogprobSpace,
    RolloutGroup,
    ScoredGroup,
    TokenStats,
    TrainBatch,
    TrainGroup,
    TrainMember,
)

__all__ = [
    "Share",
    "attach_logprobs",
    "batch_of",
    "penalised_totals",
    "take_share",
    "train_group",
    "updates_of",
    "with_advantages",
]

_UPDATE_COST = 3
"""Of a token in an update, forward and backward, where a pass for its log-probability costs 1."""
_PATCHES = 4
"""What a vision tower sees for a visual token, in Qwen's models; counted as tokens, as layers are of like size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What of a step this rank trains on."""

    pieces: tuple[Piece, ...]
    """Which groups, or parts of groups."""
    batch: TrainBatch
    """These, in the same order; its denominators are filled in when it is cut into updates."""


def take_share(parts: Parts, known: Known, scored: Mapping[Piece, ScoredGroup], *, step: int) -> Share:
    """This rank's share of the step, balanced by tokens, advantages still 0.

    Members without a total, truncated ones where these are masked, and those with a token that stands for an image are
    out of the loss; they keep their place so that every later list lines up.
    """
    recipe = parts.plan.recipe
    groups = {
        piece: train_group(
            one.group,
            _in_loss(recipe, known.groups[piece.place])[piece.first : piece.first + piece.count],
            parts.prepared.reserved_ids,
        )
        for piece, one in scored.items()
    }
    chunks = _chunks(recipe, len(known.groups))
    shares = balance(known.shares, _costs(recipe, known), chunks) if parts.ranks.world_size > 1 else known.shares
    moved = move(parts.ranks, groups, known.shares, shares)
    batch = batch_of(recipe, moved, known.logprob_space, step=step)
    return Share(pieces=shares[parts.ranks.rank], batch=batch)


def batch_of(recipe: Recipe, groups: Sequence[TrainGroup], space: LogprobSpace, *, step: int) -> TrainBatch:
    """A batch whose denominators are still 0; `space` is that of the engine's log-probabilities."""
    return TrainBatch(
        groups=tuple(groups),
        step=step,
        temperature=recipe.rollout.temperature,
        logprob_space=_trained_space(recipe, space),
        sequences=0,
        tokens=0,
        max_completion_tokens=recipe.rollout.max_completion_tokens,
    )


def train_group(group: RolloutGroup, in_loss: Iterable[bool], reserved_ids: Collection[int]) -> TrainGroup:
    """The group as the trainer gets it, advantages still 0; `in_loss` says it of each completion. One that has a token
    which stands for an image, of `reserved_ids`, ends before it."""
    return TrainGroup(
        prompt_ids=group.request.prompt_ids,
        images=group.sample.images,
        members=tuple(
            _member(completion, flag, without_placeholders(completion, reserved_ids))
            for completion, flag in zip(group.completions, in_loss, strict=True)
        ),
    )


def _member(completion: Completion, in_loss: bool, tokens: int) -> TrainMember:
    return TrainMember(
        token_ids=completion.token_ids[:tokens],
        advantage=0.0,
        sampling_logprobs=completion.sampling_logprobs[:tokens],
        in_loss=in_loss,
    )


def _in_loss(recipe: Recipe, facts: Facts) -> list[bool]:
    masked = recipe.objective.mask_truncated
    return [
        total is not None and not unreadable and not (masked and cut)
        for total, cut, unreadable in zip(facts.totals, facts.truncated, facts.unreadable, strict=True)
    ]


def _trained_space(recipe: Recipe, space: LogprobSpace) -> LogprobSpace:
    """The space of the engine's log-probabilities, which the trainer must be able to compute too."""
    if space != "processed":
        return space
    if sampling_params(recipe.rollout).filtered and recipe.objective.importance.correction != "off":
        raise RolloutError(
            "the rollout backend gives log-probabilities after top-p, top-k, min-p or a penalty, which the trainer "
            "cannot compute",
            hint="let the engine report raw log-probabilities, or set objective.importance.correction to off",
        )
    return "tempered"


def _costs(recipe: Recipe, known: Known) -> list[list[int]]:
    """[groups][G] Tokens to forward for a completion, weighted by what is done with them; its part of the group's
    images, which the tower sees once, is as many as they have patches."""
    objective, passes = recipe.objective, recipe.objective.beta > 0
    # A KL penalty changes totals later, and with them who has an advantage.
    all_train = acts_without_advantage(objective) or _penalises(recipe)
    advantages = estimate([facts.totals for facts in known.groups], recipe.advantage).advantages
    return [
        [
            (facts.prompt_tokens + length + _PATCHES * facts.visual_tokens // len(row))
            * (passes + _UPDATE_COST * (flag and (all_train or advantage != 0.0)))
            for length, flag, advantage in zip(facts.lengths, _in_loss(recipe, facts), row, strict=True)
        ]
        for facts, row in zip(known.groups, advantages, strict=True)
    ]


def attach_logprobs(parts: Parts, known: Known, share: Share, *, check_gap: bool) -> Share:
    """Add what must be known before the first update: old and reference log-probabilities, top-entropy masks.

    With one on-policy update the old log-probabilities are the detached current ones, so that pass is left out unless
    something else needs it. `check_gap` makes the pass for a comparison with the engine only: its numbers are not
    kept, so that a resumed run, which checks again, computes what an uninterrupted one does.
    """
    objective = parts.plan.recipe.objective
    keeps_old = parts.plan.batch.updates_per_step > 1 or _penalises(parts.plan.recipe)
    filters = objective.top_entropy_share < 1.0
    batch = share.batch
    if keeps_old or filters or check_gap:
        stats = parts.trainer.logprobs(batch, "policy")
        if check_gap:
            check_sampler_gap(batch, stats, parts.plan.recipe.rollout.max_gap_nats, parts.ranks)
        if keeps_old:
            batch = _with_old(batch, stats)
        if filters:
            batch = _with_policy_masks(parts, batch, stats)
    if objective.beta > 0:
        batch = _with_reference(batch, parts.trainer.logprobs(batch, "reference"))
    return replace(share, batch=batch)


def _with_old(batch: TrainBatch, stats: TokenStats) -> TrainBatch:
    space = stats.space_logprobs
    return _map_members(
        batch,
        lambda g, m, member: replace(
            member,
            old_logprobs=stats.logprobs[g][m],
            correction_logprobs=None if space is None else space[g][m],
        ),
    )


def _with_reference(batch: TrainBatch, stats: TokenStats) -> TrainBatch:
    return _map_members(batch, lambda g, m, member: replace(member, reference_logprobs=stats.logprobs[g][m]))


def _with_policy_masks(parts: Parts, batch: TrainBatch, stats: TokenStats) -> TrainBatch:
    """Of this rank's tokens those that reach the threshold of the whole step."""
    in_loss = [[member.in_loss for member in group.members] for group in batch.groups]
    everyones = parts.ranks.gather(counted_entropies(stats.entropies, in_loss))
    share = parts.plan.recipe.objective.top_entropy_share
    threshold = top_entropy_threshold((entropy for part in everyones for entropy in part), share)
    masks = top_entropy_masks(stats.entropies, threshold)
    return _map_members(batch, lambda g, m, member: replace(member, policy_mask=masks[g][m]))


def _map_members(batch: TrainBatch, change: Callable[[int, int, TrainMember], TrainMember]) -> TrainBatch:
    groups = tuple(
        replace(group, members=tuple(change(g, m, member) for m, member in enumerate(group.members)))
        for g, group in enumerate(batch.groups)
    )
    return replace(batch, groups=groups)


def penalised_totals(parts: Parts, known: Known, share: Share) -> list[tuple[float | None, ...]]:
    """The totals, minus beta times each completion's KL where KL belongs to the reward."""
    totals = [facts.totals for facts in known.groups]
    if not _penalises(parts.plan.recipe):
        return totals
    objective = parts.plan.recipe.objective
    own = {
        (piece.place, piece.first + m): _sequence_kl(member, objective.kl_estimator)
        for piece, group in zip(share.pieces, share.batch.groups, strict=True)
        for m, member in enumerate(group.members)
    }
    kl = {where: value for part in parts.ranks.gather(own) for where, value in part.items()}
    return [
        tuple(None if total is None else total - objective.beta * kl[place, m] for m, total in enumerate(row))
        for place, row in enumerate(totals)
    ]


def _penalises(recipe: Recipe) -> bool:
    return recipe.objective.beta > 0 and recipe.objective.kl_in == "reward"


def _sequence_kl(member: TrainMember, estimator: KlEstimator) -> float:
    if member.old_logprobs is None or member.reference_logprobs is None:
        raise RolloutError("KL in the reward needs old and reference log-probabilities of every completion")
    return kl_penalty(member.old_logprobs, member.reference_logprobs, estimator)


def with_advantages(share: Share, advantages: Sequence[Sequence[float]]) -> Share:
    """The same share with each member's advantage; `advantages` are those of the step."""

    def change(g: int, m: int, member: TrainMember) -> TrainMember:
        piece = share.pieces[g]
        return replace(member, advantage=advantages[piece.place][piece.first + m])

    return replace(share, batch=_map_members(share.batch, change))


def updates_of(recipe: Recipe, known: Known, share: Share) -> Iterator[TrainBatch]:
    """The optimiser updates of a step in order: `num_iterations` passes of `minibatches` parts, by whole prompts."""
    updates = [_update(recipe, known, share, chunk) for chunk in _chunks(recipe, len(known.groups))]
    for _ in range(recipe.trainer.num_iterations):
        yield from updates


def _update(recipe: Recipe, known: Known, share: Share, chunk: range) -> TrainBatch:
    """This rank's groups of one update, with the denominators of all of it."""
    lengths = [
        length
        for facts in known.groups[chunk.start : chunk.stop]
        for length, flag in zip(facts.lengths, _in_loss(recipe, facts), strict=True)
        if flag
    ]
    pairs = zip(share.pieces, share.batch.groups, strict=True)
    groups = tuple(group for piece, group in pairs if piece.place in chunk)
    return replace(share.batch, groups=groups, sequences=len(lengths), tokens=sum(lengths))


def _chunks(recipe: Recipe, groups: int) -> list[range]:
    """The groups of each update of a pass."""
    size = -(-groups // recipe.trainer.minibatches)
    return [range(start, min(start + size, groups)) for start in range(0, groups, size)]

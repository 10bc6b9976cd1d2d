"""From scored groups to what the trainer gets: one grouped batch of the step, cut into optimiser updates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from grpo_core.errors import RolloutError
from grpo_core.loop.guards import check_sampler_gap
from grpo_core.loop.parts import Parts
from grpo_core.objective.entropy import top_entropy_masks
from grpo_core.objective.kl import KlEstimator, kl_penalty
from grpo_core.recipe.schema import Recipe
from grpo_core.types import Completion, LogprobSpace, ScoredGroup, TokenStats, TrainBatch, TrainGroup, TrainMember

__all__ = ["assemble", "attach_logprobs", "penalised_totals", "updates_of", "with_advantages"]


def assemble(recipe: Recipe, scored: Sequence[ScoredGroup], *, step: int) -> TrainBatch:
    """The whole step as one batch, advantages still 0. Members without a total, and truncated ones where these are
    masked, are out of the loss; they keep their place so that every later list lines up."""
    masked = recipe.objective.mask_truncated
    groups = tuple(
        TrainGroup(
            prompt_ids=one.group.request.prompt_ids,
            images=one.group.sample.images,
            members=tuple(
                _member(completion, total is not None and not (masked and completion.truncated))
                for completion, total in zip(one.group.completions, one.totals, strict=True)
            ),
        )
        for one in scored
    )
    return _counted(
        TrainBatch(
            groups=groups,
            step=step,
            temperature=recipe.rollout.temperature,
            logprob_space=_common_space(recipe, scored),
            sequences=0,
            tokens=0,
            max_completion_tokens=recipe.rollout.max_completion_tokens,
        )
    )


def _member(completion: Completion, in_loss: bool) -> TrainMember:
    return TrainMember(
        token_ids=completion.token_ids,
        advantage=0.0,
        sampling_logprobs=completion.sampling_logprobs,
        in_loss=in_loss,
    )


def _counted(batch: TrainBatch) -> TrainBatch:
    """Fill in the denominators: what of this update is in the loss."""
    lengths = [len(member.token_ids) for group in batch.groups for member in group.members if member.in_loss]
    return replace(batch, sequences=len(lengths), tokens=sum(lengths))


def _common_space(recipe: Recipe, scored: Sequence[ScoredGroup]) -> LogprobSpace:
    """The space of the engine's log-probabilities, which the trainer must be able to compute too."""
    spaces = {one.group.logprob_space for one in scored}
    if len(spaces) != 1:
        raise RolloutError(f"the rollout backend mixes log-probability spaces in one step: {sorted(spaces)}")
    space = spaces.pop()
    if space != "processed":
        return space
    if scored[0].group.request.params.filtered and recipe.objective.importance.correction != "off":
        raise RolloutError(
            "the rollout backend gives log-probabilities after top-p, top-k, min-p or a penalty, which the trainer "
            "cannot compute",
            hint="let the engine report raw log-probabilities, or set objective.importance.correction to off",
        )
    return "tempered"


def attach_logprobs(parts: Parts, batch: TrainBatch, *, check_gap: bool) -> TrainBatch:
    """Add what must be known before the first update: old and reference log-probabilities, top-entropy masks.

    With one on-policy update the old log-probabilities are the detached current ones, so that pass is left out unless
    something else needs it. `check_gap` makes the pass for a comparison with the engine only: its numbers are not
    kept, so that a resumed run, which checks again, computes what an uninterrupted one does.
    """
    objective = parts.plan.recipe.objective
    keeps_old = parts.plan.batch.updates_per_step > 1 or (objective.beta > 0 and objective.kl_in == "reward")
    filters = objective.top_entropy_share < 1.0
    if keeps_old or filters or check_gap:
        stats = parts.trainer.logprobs(batch, "policy")
        if check_gap:
            check_sampler_gap(batch, stats)
        if keeps_old:
            batch = _with_old(batch, stats)
        if filters:
            batch = _with_policy_masks(batch, stats, objective.top_entropy_share)
    if objective.beta > 0:
        batch = _with_reference(batch, parts.trainer.logprobs(batch, "reference"))
    return batch


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


def _with_policy_masks(batch: TrainBatch, stats: TokenStats, share: float) -> TrainBatch:
    in_loss = [[member.in_loss for member in group.members] for group in batch.groups]
    masks = top_entropy_masks(stats.entropies, in_loss, share)
    return _map_members(batch, lambda g, m, member: replace(member, policy_mask=masks[g][m]))


def _map_members(batch: TrainBatch, change: Callable[[int, int, TrainMember], TrainMember]) -> TrainBatch:
    groups = tuple(
        replace(group, members=tuple(change(g, m, member) for m, member in enumerate(group.members)))
        for g, group in enumerate(batch.groups)
    )
    return replace(batch, groups=groups)


def penalised_totals(
    recipe: Recipe, scored: Sequence[ScoredGroup], batch: TrainBatch
) -> list[tuple[float | None, ...]]:
    """The totals, minus beta times each completion's KL where KL belongs to the reward."""
    objective = recipe.objective
    if objective.beta == 0 or objective.kl_in == "loss":
        return [one.totals for one in scored]
    return [
        tuple(
            None if total is None else total - objective.beta * _sequence_kl(member, objective.kl_estimator)
            for total, member in zip(one.totals, group.members, strict=True)
        )
        for one, group in zip(scored, batch.groups, strict=True)
    ]


def _sequence_kl(member: TrainMember, estimator: KlEstimator) -> float:
    if member.old_logprobs is None or member.reference_logprobs is None:
        raise RolloutError("KL in the reward needs old and reference log-probabilities of every completion")
    return kl_penalty(member.old_logprobs, member.reference_logprobs, estimator)


def with_advantages(batch: TrainBatch, advantages: Sequence[Sequence[float]]) -> TrainBatch:
    """The same batch with each member's advantage."""
    return _map_members(batch, lambda g, m, member: replace(member, advantage=advantages[g][m]))


def updates_of(recipe: Recipe, batch: TrainBatch) -> Iterator[TrainBatch]:
    """The optimiser updates of a step in order: `num_iterations` passes of `minibatches` parts, by whole prompts."""
    parts = recipe.trainer.minibatches
    size = -(-len(batch.groups) // parts)
    chunks = [batch.groups[start : start + size] for start in range(0, len(batch.groups), size)]
    for _ in range(recipe.trainer.num_iterations):
        for chunk in chunks:
            yield _counted(replace(batch, groups=chunk))

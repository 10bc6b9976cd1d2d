"""One pass over the micro-batches of a batch: log-probabilities without gradient, or losses with their backward passes.

What a trainer does around it (gather weights, sum gradients, step) is its own; everything here is the same for whoever
owns the weights. `policy` is a `PolicyModule` or what wraps one; `rounds` are this rank's micro-batches, as many as on
every other rank, and `images` how it reads images: None for a model of text alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from grpo_core.errors import Collapse, TrainerError
from grpo_core.model.routers import RouterLoss, RouterSums
from grpo_core.objective.logprobs import TokenLogprobs
from grpo_core.objective.loss import Denominators, compute_loss
from grpo_core.objective.sums import MetricSums
from grpo_core.recipe.schema import ObjectiveSettings, TrainerSettings
from grpo_core.trainer.images import ImageReader
from grpo_core.trainer.microbatch import MicroBatch, collate
from grpo_core.trainer.rounds import Round, plan_rounds, shared_tokens
from grpo_core.trainer.rows import DUMMY, rows_for_loss, rows_of
from grpo_core.trainer.spread import Spread
from grpo_core.types import TokenStats, TrainBatch, TrainGroup, UpdateReport
from grpo_core.types.sample import image_count

__all__ = ["Packed", "Passed", "backward_pass", "pack_for_loss", "require_finite", "token_stats", "update_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """This rank's part of an update, in micro-batches."""

    rounds: list[Round]
    """At least one micro-batch, and as many on every rank: dummies fill up."""
    tokens: int
    """Forwarded tokens, without padding and dummies."""
    skipped: int
    """Sequences in the loss whose gradient is 0 and that are therefore not forwarded."""

    @property
    def micro_batches(self) -> int:
        """How many there are."""
        return sum(len(each.packs) for each in self.rounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """What forward and backward of an update gave."""

    loss: float
    """Of the whole update, over all ranks."""
    sums: MetricSums
    """This rank's part of the metrics."""
    slots: int
    """Tokens forwarded on this rank, padding included."""
    router_loss: float | None = None
    """Of the whole update, over all ranks, without its coefficient; None: there is none."""
    visual_tokens: int | None = None
    """What the tower made of this rank's images, each once; None: the model reads text only."""
    tower_calls: int = 0
    """Calls of the tower."""


@torch.no_grad()
def token_stats(
    policy: Callable[..., Any],
    batch: TrainBatch,
    spread: Spread,
    *,
    budget_tokens: int,
    images: ImageReader | None = None,
    shared: bool = False,
) -> TokenStats:
    """Per-token numbers of every member, in the loss or not; micro-batches have at most `budget_tokens`, and prompts
    once where they are `shared`, as `SharedPrefix` decides."""
    raw = _needs_raw(batch)
    numbers: dict[tuple[int, int], tuple[tuple[float, ...], ...]] = {}
    rounds = spread.even(plan_rounds(rows_of(batch), budget_tokens, shared=shared))
    for micro, _ in _micro_batches(policy, batch, rounds, spread, images):
        computed: TokenLogprobs = policy(micro.inputs, temperature=batch.temperature, raw=raw)
        kinds = [values.tolist() for values in computed if values is not None]
        start = 0
        for row in micro.rows:
            end = start + len(row.member.token_ids)
            numbers[row.group, row.index] = tuple(tuple(values[start:end]) for values in kinds)
            start = end
    return _token_stats(batch, numbers, raw)


def pack_for_loss(
    batch: TrainBatch,
    objective: ObjectiveSettings,
    spread: Spread,
    *,
    budget_tokens: int,
    routers: RouterLoss | None = None,
    shared: bool = False,
) -> Packed:
    """The micro-batches of an update; `routers` is the policy's `router_loss`, and `shared` as in `token_stats`."""
    rows, skipped = rows_for_loss(batch, objective, routed=routers is not None)
    own = plan_rounds(rows, budget_tokens, shared=shared)
    return Packed(rounds=spread.even(own), tokens=_forwarded(own), skipped=skipped)


def backward_pass(
    policy: Callable[..., Any],
    batch: TrainBatch,
    rounds: Sequence[Round],
    objective: ObjectiveSettings,
    spread: Spread,
    *,
    backward: Callable[[Tensor, bool], None],
    routers: RouterLoss | None = None,
    images: ImageReader | None = None,
) -> Passed:
    """Forward each micro-batch and hand its loss to `backward`, with whether it is the last one. `routers` is the
    policy's `router_loss`.

    Losses are divided by the denominators of the whole update, so that their plain sum, over micro-batches and ranks,
    is the loss; and so is the sum of their gradients the gradient.
    """
    denominators = Denominators.of(batch)
    chosen_E = None if routers is None else _chosen_experts(policy, batch, rounds, spread, images)
    sums, losses, router_losses, slots = MetricSums.none(spread.device), [], [], 0
    left = sum(len(each.packs) for each in rounds)
    for micro, joined in _micro_batches(policy, batch, rounds, spread, images):
        computed, routed = _forward(policy, micro, batch, objective, routed=routers is not None)
        result = compute_loss(micro.loss_inputs(computed), denominators, objective)
        loss = result.loss
        if routers is not None and routed is not None and chosen_E is not None:
            router_loss = routers.loss(routed.probabilities_E, chosen_E)
            loss = loss + routers.coefficient * router_loss
            router_losses.append(router_loss.detach())
        left -= 1
        backward(joined(loss), left == 0)
        losses.append(loss.detach())
        sums, slots = sums + result.sums, slots + micro.slots
    totals = spread.total([torch.stack(each).sum().item() for each in (losses, router_losses) if each])
    return Passed(
        loss=totals[0],
        sums=sums,
        slots=slots,
        router_loss=totals[1] if routers is not None else None,
        visual_tokens=None if images is None else sum(images.visual_tokens(group) for group in _encoded(batch, rounds)),
        tower_calls=sum(each.has_images for each in rounds),
    )


def _forwarded(rounds: Sequence[Round]) -> int:
    """Tokens, without padding and dummies."""
    packs = [[row for row in rows if row is not DUMMY] for each in rounds for rows in each.packs]
    if any(each.is_shared for each in rounds):
        return sum(shared_tokens(rows) for rows in packs)
    return sum(row.length for rows in packs for row in rows)


def _encoded(batch: TrainBatch, rounds: Sequence[Round]) -> Iterator[TrainGroup]:
    """The groups whose images the tower sees on this rank."""
    return (batch.groups[group] for each in rounds for group in each.groups)


def _micro_batches(
    policy: Callable[..., Any],
    batch: TrainBatch,
    rounds: Sequence[Round],
    spread: Spread,
    images: ImageReader | None,
) -> Iterator[tuple[MicroBatch, Callable[[Tensor], Tensor]]]:
    """Each micro-batch of a pass, and what its loss must go through: with the last one of a round, the gradient of all
    of them goes on into the vision tower."""
    for each in rounds:
        groups = {group: batch.groups[group] for group in each.groups}
        if images is None:
            _require_text(batch, groups.values())
            yield from ((collate(rows, spread.device, shared=each.is_shared), _as_it_is) for rows in each.packs)
            continue
        packs = each.packs
        if each.has_images and (DUMMY,) in packs:
            groups[DUMMY.group] = images.blank
            blank = (replace(DUMMY, prompt_ids=images.blank.prompt_ids),)
            packs = tuple(blank if rows == (DUMMY,) else rows for rows in packs)
        encoded = images.encode(policy, groups)
        leaves = encoded.cut() if len(packs) > 1 else encoded
        for rows in packs[:-1]:
            yield collate(rows, spread.device, leaves, shared=each.is_shared), _as_it_is
        last = collate(packs[-1], spread.device, encoded, shared=each.is_shared)
        yield last, partial(encoded.joined, before=leaves)


def _as_it_is(loss: Tensor) -> Tensor:
    return loss


def _require_text(batch: TrainBatch, groups: Iterable[TrainGroup]) -> None:
    for group in groups:
        raise TrainerError(
            f"step {batch.step}: a prompt has {image_count(len(group.images))}, and the model reads text only",
            hint="train a vision-language model",
        )


@torch.no_grad()
def _chosen_experts(
    policy: Callable[..., Any],
    batch: TrainBatch,
    rounds: Sequence[Round],
    spread: Spread,
    images: ImageReader | None,
) -> Tensor:
    """[E] How often each expert is chosen in the whole update, over all ranks: the gradient of every token depends on
    it, so it is counted in a pass of its own."""
    counted = []
    for micro, _ in _micro_batches(policy, batch, rounds, spread, images):
        _, routed = policy(micro.inputs, temperature=batch.temperature, routed=True)
        counted.append(routed.chosen_E)
    total = spread.total(torch.stack(counted).sum(0).tolist())
    return torch.tensor(total, dtype=torch.float64, device=spread.device)


def _forward(
    policy: Callable[..., Any], micro: MicroBatch, batch: TrainBatch, objective: ObjectiveSettings, *, routed: bool
) -> tuple[TokenLogprobs, RouterSums | None]:
    computed = policy(
        micro.inputs,
        temperature=batch.temperature,
        with_entropy_grad=objective.entropy_bonus > 0,
        raw=_needs_raw(batch),
        **({"routed": True} if routed else {}),
    )
    return computed if routed else (computed, None)


def require_finite(
    *, step: int, update: int, total_updates: int, loss: float, norm: float, settings: TrainerSettings
) -> None:
    """Raise `Collapse` unless loss and norm of the gradient, the same on all ranks, are finite."""
    if math.isfinite(loss) and math.isfinite(norm):
        return
    raise Collapse(
        f"step {step}, update {update} of {total_updates}: the loss is {loss:g} and the norm of its gradient {norm:g}; "
        "the weights are as they were before this update",
        hint="go on from a checkpoint with a longer warm-up or a lower trainer.learning_rate (it is "
        f"{settings.learning_rate:g}); with trainer.precision bf16, try fp32; look at the last completions "
        "for text that fell apart before",
    )


def update_report(packed: Packed, passed: Passed, spread: Spread, *, norm: float, rate: float) -> UpdateReport:
    """The metrics of an update, over all ranks; `norm` is the gradient's before clipping, `rate` the learning rate."""
    tokens, slots, skipped = spread.total([packed.tokens, passed.slots, packed.skipped])
    router_loss = {} if passed.router_loss is None else {"policy/router_loss": passed.router_loss}
    visual = {}
    if passed.visual_tokens is not None:
        (visual_tokens,) = spread.total([passed.visual_tokens])
        visual = {"trainer/visual_tokens": visual_tokens, "trainer/tower_calls": float(passed.tower_calls)}
    return UpdateReport(
        metrics={
            **spread.total_sums(passed.sums).finalise(),
            **router_loss,
            "trainer/loss": passed.loss,
            "trainer/grad_norm": norm,
            "trainer/learning_rate": rate,
            "trainer/micro_batches": float(packed.micro_batches),
            "trainer/tokens": tokens,
            "trainer/padding_share": 1.0 - tokens / slots,
            "trainer/skipped_sequences": skipped,
            **visual,
        }
    )


def _needs_raw(batch: TrainBatch) -> bool:
    """Whether the sampler's log-probabilities are of another distribution than the policy's own."""
    return batch.logprob_space == "raw" and batch.temperature != 1.0


def _token_stats(
    batch: TrainBatch, numbers: dict[tuple[int, int], tuple[tuple[float, ...], ...]], raw: bool
) -> TokenStats:
    def kind(index: int) -> tuple[tuple[tuple[float, ...], ...], ...]:
        return tuple(
            tuple(numbers[g, m][index] if member.token_ids else () for m, member in enumerate(group.members))
            for g, group in enumerate(batch.groups)
        )

    return TokenStats(logprobs=kind(0), entropies=kind(1), space_logprobs=kind(2) if raw else None)

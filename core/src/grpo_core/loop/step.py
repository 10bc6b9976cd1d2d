"""One training step, as the design's line reads:

    prompts → rollout → score → gather → logprobs → advantage → updates → report

Weights went to the rollout backend before it. Every rank runs it on its share. Everything that decides numbers is a
function of (seed, step), so a step does not care what ran before it in this process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grpo_core.advantage.estimate import Estimate, estimate
from grpo_core.loop import batches, metrics
from grpo_core.loop.ahead import Asked
from grpo_core.loop.batches import Share
from grpo_core.loop.facts import Known, learn
from grpo_core.loop.fresh import compare, draw_beginnings
from grpo_core.loop.parts import Parts
from grpo_core.loop.rollout import step_requests
from grpo_core.loop.scores import bring_together, part_of, score
from grpo_core.loop.timing import Clock
from grpo_core.reward.binding import RunValues
from grpo_core.reward.metrics import reward_metrics, task_metrics
from grpo_core.types import RolloutGroup, ScoredGroup, StepReport, UpdateReport

__all__ = ["StepResult", "run_step"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """A step's report, and the version of the weights it left behind."""

    report: StepReport
    """For observers and records."""
    version: int
    """Optimiser updates so far."""
    data: Mapping[str, Any]
    """Where the data stands after it, for a checkpoint."""


def run_step(parts: Parts, *, step: int, total_steps: int, version: int, check_gap: bool) -> StepResult:
    """Run step `step` (from 1) with weights of `version` updates, together with all other ranks.

    `check_gap` compares trainer and engine before anything is updated: asked for on the first step of a process.
    """
    clock = Clock(parts.ranks)
    asked, groups, fresh = draw(parts, step, total_steps, version, clock)
    requests = asked.requests
    mine = score(parts, requests, asked.mine, groups, moment_of(parts, step, total_steps), clock)
    with clock("gather"):
        known = learn(parts.ranks, mine, parts.prepared.reserved_ids)
        parts.scorer.failures.look(known.groups, samples=[request.sample for request in requests], step=step)
        scored = bring_together(parts, requests, mine)
        share = batches.take_share(parts, known, mine, step=step)
        parts.weights.rest()
    with clock("logprobs"):
        share = batches.attach_logprobs(parts, known, share, check_gap=check_gap)
        estimated, share = estimate_advantages(parts, known, share)
    with clock("update"):
        updates = [parts.trainer.update(part) for part in batches.updates_of(parts.plan.recipe, known, share)]
    report = make_report(parts, step, total_steps, scored, estimated, updates, clock)
    if parts.ahead is not None and parts.ranks.is_first:
        report = replace(report, metrics={**report.metrics, **metrics.staleness(scored, version), **fresh})
    return StepResult(report=report, version=version + len(updates), data=asked.data)


def draw(
    parts: Parts, step: int, total_steps: int, version: int, clock: Clock
) -> tuple[Asked, Iterable[RolloutGroup], Mapping[str, float]]:
    """What the step asks, and the groups: as they come, with the newest weights; or, drawn ahead, all of them, while
    those of the next step are on their way, and how far engine and trainer are apart for these."""
    if parts.ahead is None:
        with clock("weights"):
            parts.weights.to(version)
        asked = ask(parts, step)
        return asked, parts.rollout.generate(list(asked.mine.values())), {}
    if not parts.ahead.has_begun(step):
        with clock("weights"):
            parts.weights.to(version)
        parts.ahead.begin(step, ask(parts, step))
    with clock("rollout"):
        asked, groups = parts.ahead.take(step)
    if step == total_steps:
        return asked, groups, {}
    following = ask(parts, step + 1)
    with clock("weights"):
        parts.weights.to(version)
        beginnings = draw_beginnings(parts, following)
        parts.ahead.begin(step + 1, following)
        return asked, groups, compare(parts, beginnings, step=step)


def ask(parts: Parts, step: int) -> Asked:
    """The prompts of a step as requests, and this rank's share of them."""
    feed, seed = parts.prepared.feed, parts.plan.recipe.run.seed
    requests = step_requests(parts.plan, feed.take(step), seed=seed, step=step)
    return Asked(requests=requests, mine=part_of(parts, requests), data=feed.state())


def moment_of(parts: Parts, step: int, total_steps: int) -> RunValues:
    """When it is, for rewards that ask."""
    epoch = parts.prepared.feed.epochs_before(step)
    return RunValues(step=step, epoch=epoch, progress=step / total_steps, max_steps=total_steps)


def estimate_advantages(parts: Parts, known: Known, share: Share) -> tuple[Estimate, Share]:
    """Advantages of the totals of the whole step, KL subtracted first where it belongs to the reward."""
    estimated = estimate(batches.penalised_totals(parts, known, share), parts.plan.recipe.advantage)
    return estimated, batches.with_advantages(share, estimated.advantages)


def make_report(
    parts: Parts,
    step: int,
    total_steps: int,
    scored: tuple[ScoredGroup, ...],
    estimated: Estimate,
    updates: Sequence[UpdateReport],
    clock: Clock,
) -> StepReport:
    """All metrics of the step under their documented names; rank 0 has them, it alone has all groups."""
    if not parts.ranks.is_first:
        return StepReport(step=step, total_steps=total_steps, metrics={})
    values: dict[str, float | None] = {
        "epoch": parts.prepared.feed.epochs_before(step + 1),
        **reward_metrics(scored),
        **task_metrics(scored),
        "groups/no_signal_share": sum(estimated.no_signal) / len(estimated.no_signal),
        **metrics.dataset_metrics([each.name for each in parts.plan.datasets if each.name], scored),
        **metrics.completion_metrics(scored),
        **metrics.placeholder_metrics(scored, parts.prepared.reserved_ids),
        **metrics.merge_updates(updates),
        **clock.metrics(),
        **metrics.throughput(scored, updates, clock),
    }
    return StepReport(
        step=step, total_steps=total_steps, metrics=values, groups=scored, advantages=estimated.advantages
    )

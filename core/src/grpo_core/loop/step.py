"""One training step, as the design's line reads:

    prompts → rollout → score → advantage → batches → updates → report

Weights went to the rollout backend before it. Everything that decides numbers is a function of (seed, step), so a
step does not care what ran before it in this process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grpo_core.advantage.estimate import Estimate, estimate
from grpo_core.data.prompts import Prompt
from grpo_core.loop import batches, metrics
from grpo_core.loop.parts import Parts
from grpo_core.loop.rollout import generate, step_requests
from grpo_core.loop.timing import Clock
from grpo_core.reward.metrics import reward_metrics
from grpo_core.types import ScoredGroup, StepReport, TrainBatch, UpdateReport

__all__ = ["StepResult", "run_step"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """A step's report, and the version of the weights it left behind."""

    report: StepReport
    """For observers and records."""
    version: int
    """Optimiser updates so far."""


def run_step(parts: Parts, *, step: int, total_steps: int, version: int, check_gap: bool) -> StepResult:
    """Run step `step` (from 1) with weights of `version` updates.

    `check_gap` compares trainer and engine before anything is updated: asked for on the first step of a process.
    """
    clock = Clock()
    with clock("weights"):
        parts.weights.to(version)
    prompts = parts.prepared.feed.take(step)
    scored = roll_and_score(parts, prompts, step=step, total_steps=total_steps, clock=clock)
    with clock("logprobs"):
        batch = batches.assemble(parts.plan.recipe, scored, step=step)
        batch = batches.attach_logprobs(parts, batch, check_gap=check_gap)
    estimated, batch = estimate_advantages(parts, scored, batch)
    with clock("update"):
        updates = [parts.trainer.update(part) for part in batches.updates_of(parts.plan.recipe, batch)]
    report = make_report(parts, step, total_steps, scored, estimated, updates, clock)
    return StepResult(report=report, version=version + len(updates))


def roll_and_score(
    parts: Parts, prompts: Sequence[Prompt], *, step: int, total_steps: int, clock: Clock
) -> tuple[ScoredGroup, ...]:
    """Generate, and score each group as it arrives; in the order of the prompts."""
    run = parts.plan.recipe.run
    epoch = parts.prepared.feed.epochs_before(step)
    scoring = parts.scorer.begin(step=step, epoch=epoch, progress=step / total_steps, max_steps=total_steps)
    requests = step_requests(parts.plan, prompts, seed=run.seed, step=step)
    with clock("rollout"):
        for group in generate(parts.rollout, requests):
            scoring.add(group)
    with clock("score"):
        by_request = {id(scored.group.request): scored for scored in scoring.finish()}
    return tuple(by_request[id(request)] for request in requests)


def estimate_advantages(parts: Parts, scored: Sequence[ScoredGroup], batch: TrainBatch) -> tuple[Estimate, TrainBatch]:
    """Advantages of the totals, KL subtracted first where it belongs to the reward."""
    recipe = parts.plan.recipe
    totals = batches.penalised_totals(recipe, scored, batch)
    estimated = estimate(totals, recipe.advantage)
    return estimated, batches.with_advantages(batch, estimated.advantages)


def make_report(
    parts: Parts,
    step: int,
    total_steps: int,
    scored: tuple[ScoredGroup, ...],
    estimated: Estimate,
    updates: Sequence[UpdateReport],
    clock: Clock,
) -> StepReport:
    """All metrics of the step under their documented names."""
    values: dict[str, float | None] = {
        "epoch": parts.prepared.feed.epochs_before(step + 1),
        **reward_metrics(scored),
        "groups/no_signal_share": sum(estimated.no_signal) / len(estimated.no_signal),
        **metrics.dataset_metrics([each.name for each in parts.plan.datasets if each.name], scored),
        **metrics.completion_metrics(scored),
        **metrics.merge_updates(updates),
        **clock.metrics(),
        **metrics.throughput(scored, updates, clock),
    }
    return StepReport(
        step=step, total_steps=total_steps, metrics=values, groups=scored, advantages=estimated.advantages
    )

"""Evaluation: held-out prompts answered greedily, and sampled where pass@k is asked for.

Accuracy counts the rewards that verify (1.0 = correct). A prompt that no verifying reward judges, or on which one
failed, is in no accuracy; `eval/judged_share` says how many were.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar

from grpo_core.data.prompts import Prompt
from grpo_core.loop.parts import Parts
from grpo_core.loop.rollout import make_request, sampling_params, stream_seed
from grpo_core.loop.scores import bring_together, roll_and_score
from grpo_core.loop.timing import Clock
from grpo_core.recipe.plan import LaunchPlan, PlannedReward
from grpo_core.reward.binding import RunValues
from grpo_core.types import EvaluationReport, Failed, RolloutRequest, ScoredGroup

__all__ = ["answer", "evaluate", "pass_at_k", "reward_metrics_by_task", "success_rewards"]

Value = TypeVar("Value")


def evaluate(parts: Parts, prompts: Sequence[Prompt], *, step: int) -> EvaluationReport:
    """Answer `prompts` with the weights the backend has now, and score the answers; every rank its share of both."""
    plan, metrics = parts.plan, dict[str, float]()
    with parts.ranks.stage("evaluation"):
        greedy = answer(parts, prompts, step=step, samples=0)
        if parts.ranks.is_first:
            metrics |= greedy_metrics(plan, greedy)
        if plan.recipe.evaluation.samples:
            sampled = answer(parts, prompts, step=step, samples=plan.recipe.evaluation.samples)
            if parts.ranks.is_first:
                metrics |= sampled_metrics(plan, sampled)
        return EvaluationReport(step=step, metrics=parts.ranks.from_first(metrics))


def answer(
    parts: Parts, prompts: Sequence[Prompt], *, step: int, samples: int, watched: bool = True
) -> tuple[ScoredGroup, ...]:
    """Greedy answers (`samples` 0, one a prompt) or sampled ones, scored, in the order of the prompts; on rank 0.

    The random streams do not depend on the step, so answers at two steps differ by the weights alone. `watched`:
    whether too many failed scores raise `RewardError`.
    """
    params = sampling_params(parts.plan.recipe.rollout, greedy=samples == 0)
    requests: list[RolloutRequest] = [
        make_request(
            prompt,
            n=max(samples, 1),
            params=params,
            seed=stream_seed(parts.plan.recipe.run.seed, "evaluation", prompt.sample.id),
        )
        for prompt in prompts
    ]
    moment = RunValues(step=step, epoch=0.0, progress=0.0, max_steps=max(step, 1))
    mine = roll_and_score(parts, requests, moment, Clock())
    scored = bring_together(parts, requests, mine)
    if watched and parts.ranks.is_first:
        parts.scorer.failures.look(scored, samples=[one.group.sample for one in scored], step=step)
    return scored


def success_rewards(plan: LaunchPlan) -> tuple[PlannedReward, ...]:
    """The rewards whose 1.0 means "correct": the one the recipe names, else those that verify."""
    chosen = plan.recipe.evaluation.success
    return tuple(reward for reward in plan.rewards if (reward.name == chosen if chosen else reward.verifies))


def greedy_metrics(plan: LaunchPlan, scored: Sequence[ScoredGroup]) -> dict[str, float]:
    """Accuracy, mean reward, each reward and each task, of one greedy answer a prompt."""
    names = [reward.name for reward in success_rewards(plan)]
    metrics = {"eval/prompts": float(len(scored))}
    totals = [one.totals[0] for one in scored]
    metrics |= _means("eval/reward_mean", totals)
    metrics |= _standard_error("eval/reward_se", totals)
    metrics |= reward_metrics_by_task(scored)
    for reward in plan.rewards:
        values = (one.outcomes[reward.name][0] for one in scored)
        metrics |= _means(f"eval/rewards/{reward.name}/mean", (v for v in values if not isinstance(v, Failed)))
    if names:
        metrics |= _accuracies(scored, names)
    lengths = [len(one.group.completions[0].token_ids) for one in scored]
    metrics["eval/length_mean"] = statistics.fmean(lengths)
    metrics["eval/truncated_share"] = statistics.fmean(one.group.completions[0].truncated for one in scored)
    return metrics


def _accuracies(scored: Sequence[ScoredGroup], names: Sequence[str]) -> dict[str, float]:
    correct = [is_correct(one, 0, names) for one in scored]
    judged = [value for value in correct if value is not None]
    metrics = {"eval/judged_share": len(judged) / len(scored), **_means("eval/accuracy", judged)}
    for task, values in _by_task(scored, correct).items():
        metrics |= _means(f"eval/tasks/{task}/accuracy", values)
    return metrics


def reward_metrics_by_task(scored: Sequence[ScoredGroup]) -> dict[str, float]:
    """How many prompts of each task were answered, the mean total of the answers, and that mean's standard error."""
    metrics: dict[str, float] = {}
    for task, totals in _by_task(scored, [one.totals[0] for one in scored]).items():
        metrics[f"eval/tasks/{task}/prompts"] = float(len(totals))
        metrics |= _means(f"eval/tasks/{task}/reward_mean", totals)
        metrics |= _standard_error(f"eval/tasks/{task}/reward_se", totals)
    return metrics


def _by_task(scored: Sequence[ScoredGroup], values: Sequence[Value]) -> dict[str, list[Value]]:
    """Values, one a prompt, by the prompt's task; prompts without one are left out."""
    found: dict[str, list[Value]] = defaultdict(list)
    for one, value in zip(scored, values, strict=True):
        if one.group.sample.task is not None:
            found[one.group.sample.task].append(value)
    return found


def sampled_metrics(plan: LaunchPlan, scored: Sequence[ScoredGroup]) -> dict[str, float]:
    """Mean reward and pass@k of several sampled answers a prompt."""
    names = [reward.name for reward in success_rewards(plan)]
    metrics = _means("eval/sampled_reward_mean", (total for one in scored for total in one.totals))
    if not names:
        return metrics
    counts = []
    for one in scored:
        judged = [is_correct(one, index, names) for index in range(len(one.totals))]
        known = [value for value in judged if value is not None]
        if known:
            counts.append((len(known), sum(known)))
    for k in plan.recipe.evaluation.pass_at:
        metrics |= _means(f"eval/pass@{k}", (pass_at_k(n, c, k) for n, c in counts if n >= k))
    return metrics


def is_correct(scored: ScoredGroup, index: int, names: Sequence[str]) -> bool | None:
    """Whether every verifying reward that applies gives 1.0; None when none applies or one failed."""
    outcomes = [scored.outcomes[name][index] for name in names]
    scores = [outcome for outcome in outcomes if outcome is not None]
    if not scores or any(isinstance(score, Failed) for score in scores):
        return None
    return all(score == 1.0 for score in scores)


def pass_at_k(n: int, correct: int, k: int) -> float:
    """The unbiased estimate 1 - C(n-c, k) / C(n, k) of the chance that one of k answers is correct, from c correct
    ones among n (Chen et al. 2021, arXiv 2107.03374, equation 1)."""
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def _means(name: str, values: Iterable[float | bool | None]) -> dict[str, float]:
    known = [float(value) for value in values if value is not None]
    return {name: statistics.fmean(known)} if known else {}


def _standard_error(name: str, values: Iterable[float | None]) -> dict[str, float]:
    """That of the mean."""
    known = [value for value in values if value is not None]
    return {name: statistics.stdev(known) / math.sqrt(len(known))} if len(known) > 1 else {}

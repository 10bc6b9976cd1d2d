"""Numbers about scores: of each reward, and of the totals. Pure functions of scored groups.

Standard deviations are unbiased (divisor n - 1), as those that advantages divide by; 0.0 for a single value. A metric
is None where nothing applied: an empty step is left out of a curve, it is no zero and no NaN.

Place in the flow: scored groups → **metrics** → step report.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from grpo_core.types import Failed, Outcome, ScoredGroup

__all__ = ["reward_metrics", "task_metrics"]


def reward_metrics(scored: Sequence[ScoredGroup]) -> dict[str, float | None]:
    """All metrics whose names begin with `rewards/` and `reward/`."""
    names = scored[0].outcomes if scored else {}
    metrics: dict[str, float | None] = {}
    for name in names:
        metrics |= _one_reward(name, [group.outcomes[name] for group in scored])
    totals = [[total for total in group.totals if total is not None] for group in scored]
    known = [total for group in totals for total in group]
    return metrics | {
        "reward/mean": _mean(known),
        "reward/std": _std(known),
        "reward/group_std": _group_std(totals),
        "reward/no_total": float(sum(len(group.totals) for group in scored) - len(known)),
    }


def task_metrics(scored: Sequence[ScoredGroup]) -> dict[str, float | None]:
    """Of each task that the step asked for: its share of the prompts, the mean total of its completions, and what there
    is to learn from. Rows without a `task` are in none."""
    metrics: dict[str, float | None] = {}
    for task in sorted({one.group.sample.task for one in scored if one.group.sample.task is not None}):
        groups = [one for one in scored if one.group.sample.task == task]
        totals = [[total for total in one.totals if total is not None] for one in groups]
        metrics[f"tasks/{task}/share"] = len(groups) / len(scored)
        metrics[f"tasks/{task}/reward_mean"] = _mean([total for group in totals for total in group])
        metrics[f"tasks/{task}/group_std"] = _group_std(totals)
    return metrics


def _group_std(totals: Sequence[Sequence[float]]) -> float | None:
    spreads = [_std(group) for group in totals if len(group) > 1]
    return _mean([spread for spread in spreads if spread is not None])


def _one_reward(name: str, groups: Sequence[Sequence[Outcome]]) -> dict[str, float | None]:
    outcomes = [outcome for group in groups for outcome in group]
    scores = [outcome for outcome in outcomes if isinstance(outcome, float)]
    applied = [outcome for outcome in outcomes if outcome is not None]
    mixed = sum(any(o is None for o in group) and any(o is not None for o in group) for group in groups)
    return {
        f"rewards/{name}/mean": _mean(scores),
        f"rewards/{name}/std": _std(scores),
        f"rewards/{name}/coverage": len(applied) / len(outcomes) if outcomes else None,
        f"rewards/{name}/failed": float(sum(isinstance(outcome, Failed) for outcome in outcomes)),
        f"rewards/{name}/mixed_groups": float(mixed),
    }


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _std(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return 0.0 if values else None
    return statistics.stdev(values)

"""Metrics that only the loop can know: completions of a step, several updates of one step, throughput.

Every name is documented in docs/metrics.md; a test compares the two.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from grpo_core.data.samples import DATASET_COLUMN
from grpo_core.loop.placeholders import has_placeholder
from grpo_core.loop.timing import Clock
from grpo_core.types import ScoredGroup, UpdateReport

__all__ = ["completion_metrics", "dataset_metrics", "merge_updates", "placeholder_metrics", "staleness", "throughput"]

_SUMMED = frozenset(
    {
        "trainer/tokens",
        "trainer/micro_batches",
        "trainer/skipped_sequences",
        "trainer/visual_tokens",
        "trainer/tower_calls",
    }
)


def dataset_metrics(names: Sequence[str], scored: Sequence[ScoredGroup]) -> dict[str, float | None]:
    """Of each dataset of a mix: its share of the prompts, and the mean total of its completions."""
    values: dict[str, float | None] = {}
    for name in names:
        groups = [one for one in scored if one.group.sample.columns.get(DATASET_COLUMN) == name]
        totals = [total for one in groups for total in one.totals if total is not None]
        values[f"data/{name}/share"] = len(groups) / len(scored)
        values[f"data/{name}/reward"] = statistics.fmean(totals) if totals else None
    return values


def completion_metrics(scored: Sequence[ScoredGroup]) -> dict[str, float]:
    """Lengths in tokens, and the share that the limit cut off."""
    completions = [completion for one in scored for completion in one.group.completions]
    lengths = [len(completion.token_ids) for completion in completions]
    finished = [len(completion.token_ids) for completion in completions if not completion.truncated]
    values = {
        "completions/length_mean": statistics.fmean(lengths),
        "completions/length_min": float(min(lengths)),
        "completions/length_max": float(max(lengths)),
        "completions/truncated_share": 1.0 - len(finished) / len(lengths),
        "completions/tokens": float(sum(lengths)),
    }
    if finished:
        values["completions/finished_length_mean"] = statistics.fmean(finished)
    return values


def placeholder_metrics(scored: Sequence[ScoredGroup], reserved_ids: frozenset[int]) -> dict[str, float]:
    """Of a model that reads images: completions that hold a token which stands for one."""
    if not reserved_ids:
        return {}
    completions = [completion for one in scored for completion in one.group.completions]
    return {"completions/placeholders": float(sum(has_placeholder(each, reserved_ids) for each in completions))}


def staleness(scored: Sequence[ScoredGroup], version: int) -> dict[str, float]:
    """How many updates behind the weights of the completions are, where these are drawn ahead."""
    behind = [version - completion.policy_version for one in scored for completion in one.group.completions]
    return {"sampler/staleness_mean": statistics.fmean(behind), "sampler/staleness_max": float(max(behind))}


def merge_updates(updates: Sequence[UpdateReport]) -> dict[str, float | None]:
    """One value a name for a step of several updates: largest of `_max`, smallest of `_min`, sums of counts, the last
    learning rate, the mean of all else. Updates that do not have the name are left out."""
    names = {name: None for update in updates for name in update.metrics}
    return {name: _merged(name, [u.metrics[name] for u in updates if name in u.metrics]) for name in names}


def _merged(name: str, values: Sequence[float]) -> float:
    if name.endswith("_max"):
        return max(values)
    if name.endswith("_min"):
        return min(values)
    if name in _SUMMED:
        return sum(values)
    if name == "trainer/learning_rate":
        return values[-1]
    return statistics.fmean(values)


def throughput(scored: Sequence[ScoredGroup], updates: Sequence[UpdateReport], clock: Clock) -> dict[str, float]:
    """Tokens per second: drawn in the rollout, forwarded in the updates."""
    drawn = sum(len(completion.token_ids) for one in scored for completion in one.group.completions)
    trained = sum(update.metrics.get("trainer/tokens", 0.0) for update in updates)
    return {
        "throughput/rollout_tokens_per_s": drawn / max(clock.seconds["rollout"], 1e-9),
        "throughput/update_tokens_per_s": trained / max(clock.seconds["update"], 1e-9),
    }

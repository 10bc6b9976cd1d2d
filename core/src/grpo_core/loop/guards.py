"""When a run must not go on: the engine and the trainer disagree, or the numbers have collapsed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from grpo_core.errors import Collapse, RolloutError
from grpo_core.ranks.ranks import ALONE, Ranks
from grpo_core.types import ScoredGroup, StepReport, TokenStats, TrainBatch

__all__ = ["ZeroRewardGuard", "check_finite", "check_gap_of", "check_sampler_gap"]


def check_sampler_gap(
    batch: TrainBatch, stats: TokenStats, max_gap_nats: float, ranks: Ranks = ALONE
) -> tuple[float, float]:
    """Compare the trainer's log-probabilities with the engine's for the same tokens of all ranks, before any update;
    gives the mean and the largest difference in nats.

    Raises `RolloutError` with the numbers when they are further apart than `max_gap_nats`, a token on average: they
    cannot come from the same weights and tokens then.
    """
    trainer = stats.logprobs if stats.space_logprobs is None else stats.space_logprobs
    gaps = [
        abs(ours - theirs)
        for group, rows in zip(batch.groups, trainer, strict=True)
        for member, row in zip(group.members, rows, strict=True)
        for ours, theirs in zip(row, member.sampling_logprobs, strict=True)
    ]
    everyones = ranks.gather((math.fsum(gaps), max(gaps, default=0.0), len(gaps)))
    tokens = sum(count for _, _, count in everyones)
    mean, largest = math.fsum(total for total, _, _ in everyones) / tokens, max(most for _, most, _ in everyones)
    if not mean <= max_gap_nats:
        raise _apart(batch.step, mean, largest, f" over {tokens} tokens", max_gap_nats)
    return mean, largest


def check_gap_of(report: StepReport, max_gap_nats: float) -> None:
    """The same for a step that was made, by its metrics: an engine can miss an update in the middle of a run. A step of
    completions that are meant to be of older weights tells nothing; `fresh.py` compares there."""
    if report.metrics.get("sampler/staleness_max"):
        return
    mean, largest = report.metrics.get("sampler/gap_mean"), report.metrics.get("sampler/gap_max")
    if mean is not None and largest is not None and not mean <= max_gap_nats:
        raise _apart(report.step, mean, largest, "", max_gap_nats)


def _apart(step: int, mean: float, largest: float, where: str, max_gap_nats: float) -> RolloutError:
    return RolloutError(
        f"step {step}: the trainer gives the sampled tokens other log-probabilities than the rollout engine did: "
        f"{mean:.3g} nats a token on average, {largest:.3g} at most,{where} where {max_gap_nats:g} are allowed "
        "(rollout.max_gap_nats)",
        hint="the engine's weights are stale, its chat template or tokenizer differs, it computes in another "
        "precision than the trainer, or its log-probabilities are shifted or in another space than it declares",
    )


def check_finite(report: StepReport) -> None:
    """Raise `Collapse` when a metric of the step is NaN or infinite."""
    bad = {name: value for name, value in report.metrics.items() if value is not None and not math.isfinite(value)}
    if bad:
        names = ", ".join(f"{name} = {value}" for name, value in bad.items())
        raise Collapse(
            f"step {report.step}: {names}",
            hint="go back to the last checkpoint with a lower trainer.learning_rate, or trainer.max_grad_norm 0.5",
        )


class ZeroRewardGuard:
    """Counts steps in a row in which every total is exactly 0, and stops the run when there are too many."""

    def __init__(self, patience_steps: int, streak: int = 0) -> None:
        self._patience_steps = patience_steps
        self.streak = streak

    def watch(self, scored: Sequence[ScoredGroup], step: int) -> None:
        """Look at a step's totals; raises `Collapse` when the patience is used up."""
        silent = all(not total for one in scored for total in one.totals)
        self.streak = self.streak + 1 if silent else 0
        if self._patience_steps and self.streak >= self._patience_steps:
            raise Collapse(
                f"step {step}: every completion of the last {self.streak} steps has a total of 0, so nothing is learnt",
                hint="look at completions/ for what the model writes; start from an instruct model, ask for the format "
                "in the system prompt, add a reward that pays sooner (format_reward), or make the task easier. "
                "run.zero_reward_patience_steps changes this limit, 0 switches it off",
            )

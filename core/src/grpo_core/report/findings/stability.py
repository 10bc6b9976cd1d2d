"""Whether the run is stable: collapse, entropy gone, engine and trainer apart, NaN.

A collapse is judged by the run itself while it goes on (`health/collapse`: rewards that fell sharply from their best,
or loss, gradient norm and KL that climb together); here it is told in whole.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from grpo_core.report.findings.finding import Finding, number
from grpo_core.report.trends import Curve, move, peak, smoothed

__all__ = ["collapse", "engine_apart", "entropy_gone", "not_finite"]

_ADVICE = (
    "Go back to a checkpoint before that step with a lower learning rate and a lower beta; if that is not enough, set "
    "trainer.max_grad_norm to 0.5."
)
_CLIMB = 3.0
_GAP_NATS = 0.05


def collapse(judged: Curve, reward: Curve, others: Mapping[str, Curve]) -> Finding | None:
    """Steps that the run judged a collapse (1 in `judged`), with what became of the mean total; those of `others`
    (gradient norm, KL) that climbed are named."""
    bad = [step for step, value in zip(judged.steps, judged.values, strict=True) if value]
    if not bad or not reward.values:
        return None
    best, end = peak(reward), smoothed(reward).values[-1]
    recovered = not judged.values[-1]
    was = f"The total reward was {number(best.value)} at its best, near step {best.step}"
    told = [f"{was}, and is {number(end)} at the end."]
    climbed = {name: medians for name, curve in others.items() if (medians := _climbed(curve, bad[0])) is not None}
    if climbed:
        seen = ", ".join(f"{name} {number(before)} → {number(after)}" for name, (before, after) in climbed.items())
        told.append(f"Medians before and since: {seen}.")
    return Finding(
        rule="recovered" if recovered else "collapse",
        level="warning" if recovered else "bad",
        title=f"Collapse at step {bad[0]}, and recovery" if recovered else f"Collapse at step {bad[0]}",
        text=" ".join(told),
        advice=_ADVICE,
        metrics=("reward/mean", "health/collapse", *climbed),
    )


def _climbed(curve: Curve, step: int) -> tuple[float, float] | None:
    """The medians before and since a step, where the later one is much larger."""
    points = list(zip(curve.steps, curve.values, strict=True))
    before, since = [v for s, v in points if s < step], [v for s, v in points if s >= step]
    if not before or not since:
        return None
    medians = statistics.median(before), statistics.median(since)
    return medians if medians[1] > _CLIMB * medians[0] > 0 else None


def entropy_gone(entropy: Curve) -> Finding | None:
    """The policy has become nearly deterministic: it explores no more."""
    if not entropy.enough:
        return None
    ends = move(entropy)
    if ends.before <= 0 or ends.after > 0.1 * ends.before:
        return None
    return Finding(
        rule="entropy-gone",
        level="warning",
        title="The policy hardly explores any more",
        text=f"Entropy fell from {number(ends.before)} to {number(ends.after)} nats a token.",
        advice="Fine when the task is learnt. Otherwise: a higher clip_high, a small entropy bonus, a lower learning "
        "rate, or stop here.",
        metrics=("policy/entropy",),
    )


def engine_apart(gap: Curve) -> Finding | None:
    """The rollout engine and the trainer disagree more than rounding explains."""
    if not gap.values or (worst := max(smoothed(gap).values)) <= _GAP_NATS:
        return None
    return Finding(
        rule="engine-apart",
        level="warning",
        title="Sampler and trainer disagree",
        text=f"Their log-probabilities of the same tokens differ by up to {number(worst)} nats on average; rounding in "
        f"bf16 stays below {_GAP_NATS}.",
        advice="Look for stale weights, another chat template or tokenizer, or sampling filters that the engine counts "
        "in; keep objective.importance.correction on.",
        metrics=("sampler/gap_mean",),
    )


def not_finite(bad: Sequence[tuple[int, str]]) -> Finding | None:
    """Metrics that are NaN or infinite; `bad` are (step, name)."""
    if not bad:
        return None
    step, _ = min(bad)
    names = sorted({name for _, name in bad})
    return Finding(
        rule="not-finite",
        level="bad",
        title="Not a number",
        text=f"From step {step} on there are values that are NaN or infinite: {', '.join(names[:6])}"
        f"{' and others' if len(names) > 6 else ''}. They are gaps in the curves.",
        advice=_ADVICE,
        metrics=tuple(names[:6]),
    )

"""Whether the run is stable: collapse, gradients and KL out of hand, entropy gone, engine and trainer apart, NaN.

Two collapses stand behind the first rules: both rewards fell near step 200 at a learning rate of 1e-6 with beta 0.04
and never came back; and rewards fell while loss, gradient norm and KL shot up together, which a gradient norm of 0.5
prevented.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from grpo_core.report.findings.finding import Finding, number
from grpo_core.report.trends import Curve, move, peak, smoothed

__all__ = ["climbing", "collapse", "engine_apart", "entropy_gone", "not_finite"]

_ADVICE = (
    "Go back to a checkpoint before that step with a lower learning rate and a lower beta; if that is not enough, set "
    "trainer.max_grad_norm to 0.5."
)
_LOST_SHARE = 0.5
_CLIMB = 3.0
_GAP_NATS = 0.05


def collapse(reward: Curve, *, label: str, metric: str) -> Finding | None:
    """A reward that lost at least half of its best, beyond its noise, and has not recovered at the end."""
    if not reward.enough:
        return None
    best, end = peak(reward), move(reward).after
    means = smoothed(reward)
    noise = statistics.pstdev(value - mean for value, mean in zip(reward.values, means.values, strict=True))
    scale = max(abs(best.value), best.value - min(means.values))
    lost = best.value - end
    if lost < _LOST_SHARE * scale or lost < 2 * noise or lost == 0:
        return None
    return Finding(
        rule="collapse",
        level="bad",
        title="Collapse",
        text=f"{label} was {number(best.value)} at its best, near step {best.step}, and is {number(end)} at the end.",
        advice=_ADVICE,
        metrics=(metric,),
    )


def climbing(gradient_norm: Curve, others: Mapping[str, Curve]) -> Finding | None:
    """Gradient norm and all of `others` (KL, size of the loss) end far above what they were for most of the run.

    KL grows steadily in a healthy run, to about twice its own median; three times is another thing.
    """
    curves = {"trainer/grad_norm": gradient_norm, **others}
    if not others or not all(curve.enough for curve in curves.values()):
        return None
    ends = {name: move(curve).after for name, curve in curves.items()}
    usual = {name: statistics.median(curve.values) for name, curve in curves.items()}
    if not all(usual[name] >= 0 and ends[name] > _CLIMB * usual[name] > 0 for name in curves):
        return None
    seen = ", ".join(f"{name} {number(usual[name])} → {number(ends[name])}" for name in curves)
    return Finding(
        rule="climbing",
        level="bad",
        title="Out of hand",
        text=f"Gradient norm and divergence climb together (median of the run → its end): {seen}.",
        advice=_ADVICE,
        metrics=tuple(curves),
    )


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

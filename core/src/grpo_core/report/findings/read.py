"""All rules applied to one run: which curve stands for accuracy, which reward is about form, and the order of findings.

Place in the flow: curves and completions' summaries → **findings** → page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from grpo_core.report.completions import StepSummary
from grpo_core.report.curves import bad_values, curve, metric_names
from grpo_core.report.findings import answers, learning, stability
from grpo_core.report.findings.finding import Finding
from grpo_core.report.run import RunFolder
from grpo_core.report.trends import ENOUGH_POINTS, Curve

__all__ = ["accuracy_curve", "findings_of", "form_rewards", "paid_without"]

_TOTAL = ("The total reward", "reward/mean")


def findings_of(run: RunFolder, summaries: Sequence[StepSummary]) -> tuple[Finding, ...]:
    """What the run's numbers say; what spoils it first, then in the order one asks."""
    found = [finding for finding in _all(run, summaries) if finding is not None]
    return tuple(sorted(found, key=lambda finding: finding.level != "bad"))


def accuracy_curve(run: RunFolder) -> tuple[str, str]:
    """(label, metric) of what stands for accuracy in training: the reward that counts as success, else the one that
    verifies, else the total."""
    if run.plan is not None:
        chosen = run.plan.recipe.evaluation.success
        for reward in run.plan.rewards:
            if reward.name == chosen or (chosen is None and reward.verifies):
                return reward.name, f"rewards/{reward.name}/mean"
    return _TOTAL


def form_rewards(names: Sequence[str]) -> list[str]:
    """Rewards that pay for the form of an answer, by their names."""
    return [name for name in names if "format" in name.lower()]


def paid_without(summaries: Sequence[StepSummary], form: str) -> Curve:
    """Of the completions that other rewards pay, the share that `form` gives 0 or less."""
    return Curve.of((one.step, one.paid_without[form] / one.paid[form]) for one in summaries if one.paid.get(form))


def _all(run: RunFolder, summaries: Sequence[StepSummary]) -> Iterator[Finding | None]:
    names = [name.split("/")[1] for name in metric_names(run) if name.startswith("rewards/") and name.endswith("/mean")]
    label, metric = accuracy_curve(run)
    accuracy, total = curve(run, metric), curve(run, "reward/mean")
    yield stability.not_finite(bad_values(run))
    yield too_short(len(run.rows), scored=len(total))
    others = {name: curve(run, name) for name in ("trainer/grad_norm", "policy/kl")}
    yield stability.collapse(curve(run, "health/collapse"), total, others)
    verifies = (label, metric) != _TOTAL
    spread = curve(run, "reward/group_std")
    yield learning.learning(accuracy, spread, label=label, metric=metric, verifies=verifies)
    yield _held_out(run, accuracy, total)
    yield learning.goals_apart({name: curve(run, f"rewards/{name}/mean") for name in names})
    for form in form_rewards(names):
        yield answers.paid_without_form(paid_without(summaries, form), form=form)
    yield answers.length(curve(run, "completions/length_mean"), total)
    max_tokens = run.plan.recipe.rollout.max_completion_tokens if run.plan else None
    yield answers.cut_off(curve(run, "completions/truncated_share"), max_tokens=max_tokens)
    yield answers.no_signal(curve(run, "groups/no_signal_share"), accuracy if verifies else None, label=label)
    yield stability.entropy_gone(curve(run, "policy/entropy"))
    yield stability.engine_apart(curve(run, "sampler/gap_mean"))
    for name in names:
        yield answers.failing(curve(run, f"rewards/{name}/failed"), reward=name)
        yield answers.mixed_groups(curve(run, f"rewards/{name}/mixed_groups"), reward=name)
    yield answers.unscored(curve(run, "reward/no_total"))


def _held_out(run: RunFolder, accuracy: Curve, total: Curve) -> Finding | None:
    known = curve(run, "eval/accuracy")
    if len(known):
        error = _error_of_shares(known, _judged(run))
        return learning.held_out(known, accuracy, error=error, label="Greedy accuracy", metric="eval/accuracy")
    rewards, errors = curve(run, "eval/reward_mean"), curve(run, "eval/reward_se").values
    error = math.hypot(errors[0], errors[-1]) if errors else 0.0
    label = "Mean reward of greedy answers"
    return learning.held_out(rewards, total, error=error, label=label, metric="eval/reward_mean")


def _judged(run: RunFolder) -> float:
    """How many prompts an evaluation's accuracy is of; 0: not known."""
    prompts, share = curve(run, "eval/prompts").values, curve(run, "eval/judged_share").values
    return min(prompts, default=0.0) * min(share, default=1.0)


def _error_of_shares(known: Curve, judged: float) -> float:
    """The standard error of the change of a share, first to last. One right and one wrong prompt are added to each, so
    that 0 and 1 of a few prompts are not taken for certain."""
    if not judged:
        return 0.0
    shares = [(share * judged + 1) / (judged + 2) for share in (known.values[0], known.values[-1])]
    return math.sqrt(sum(share * (1 - share) / judged for share in shares))


def too_short(steps: int, *, scored: int) -> Finding | None:
    """Most rules compare the ends of a curve, which takes some steps that have a total reward."""
    if scored >= ENOUGH_POINTS:
        return None
    without = (
        "" if scored == steps else f", and only {scored} of them with a score" if scored else ", and none has a score"
    )
    return Finding(
        rule="too-short",
        level="note",
        title="Too short to be read",
        text=f"The run has {steps} steps so far{without}; whether a curve rises or falls is read from {ENOUGH_POINTS} "
        "steps on.",
    )

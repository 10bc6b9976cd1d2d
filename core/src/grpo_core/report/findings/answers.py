"""What the answers are like: their length, how many are cut off, whether form is kept, whether they can be judged."""

from __future__ import annotations

from grpo_core.report.findings.finding import Finding, number, percent
from grpo_core.report.trends import Curve, lowest, move

__all__ = ["cut_off", "failing", "length", "mixed_groups", "no_signal", "paid_without_form", "unscored"]

_MUCH_LONGER = 1.5
_MUCH_SHORTER = 0.67
_CUT_OFF_SHARE = 0.1
_NO_SIGNAL_SHARE = 0.6
_WITHOUT_FORM_SHARE = 0.05


def length(tokens: Curve, reward: Curve) -> Finding | None:
    """How the length of completions went: grew, shrank, or dipped and came back."""
    if not tokens.enough or not reward.enough:
        return None
    ends, dip = move(tokens), lowest(tokens)
    metrics = ("completions/length_mean",)
    went = f"from {number(ends.before)} to {number(ends.after)} tokens on average"
    dipped = dip.value < 0.75 * ends.before and ends.after > 1.25 * dip.value
    if dipped and ends.after < _MUCH_LONGER * ends.before:
        return Finding(
            rule="length-dip",
            level="note",
            title="Length dipped and came back",
            text=f"Completions went {went}, with a minimum of {number(dip.value)} near step {dip.step}.",
            advice="Usual: the model first drops what does not help, then writes out what does.",
            metrics=metrics,
        )
    if ends.after > _MUCH_LONGER * ends.before and ends.rose(0):
        return _grew(went, learnt=move(reward).rose(0.0), metrics=metrics)
    if ends.after < _MUCH_SHORTER * ends.before and ends.fell(0):
        return Finding(
            rule="length-fell",
            level="note",
            title="Completions became short",
            text=f"They went {went}.",
            advice="Read some: short is good when reasoning was idle talk, and bad when it has vanished.",
            metrics=metrics,
        )
    return None


def _grew(went: str, *, learnt: bool, metrics: tuple[str, ...]) -> Finding:
    if learnt:
        return Finding(
            rule="length-grew",
            level="note",
            title="Completions became longer",
            text=f"They went {went} while the reward rose: the model uses more room to think.",
            advice="Step time grows with it; watch the share that is cut off.",
            metrics=metrics,
        )
    return Finding(
        rule="length-drift",
        level="warning",
        title="Length drifts without a gain",
        text=f"Completions went {went}, and the reward did not rise with it.",
        advice="Add soft_overlong, or use a loss that does not favour long completions (dr_grpo, dapo).",
        metrics=metrics,
    )


def cut_off(truncated: Curve, *, max_tokens: int | None) -> Finding | None:
    """Many completions hit the token limit."""
    if not truncated.values or (share := move(truncated).after) < _CUT_OFF_SHARE:
        return None
    limit = f" of {max_tokens} tokens" if max_tokens else ""
    return Finding(
        rule="cut-off",
        level="warning",
        title="Many completions are cut off",
        text=f"{percent(share)} of them end at the limit{limit}, before an answer that could be rewarded.",
        advice="Raise rollout.max_completion_tokens, add soft_overlong, or set objective.mask_truncated.",
        metrics=("completions/truncated_share",),
    )


def paid_without_form(share: Curve, *, form: str) -> Finding | None:
    """Completions that another reward pays although reward `form` gives 0; `share`: of those that are paid."""
    if not share.enough or (after := move(share).after) < _WITHOUT_FORM_SHARE:
        return None
    return Finding(
        rule="paid-without-form",
        level="warning",
        title="Paid without the form",
        text=f"{percent(after)} of the completions that other rewards pay get 0 from {form}.",
        advice="The other rewards read answers out of any text, so the form is not worth keeping: let them ask for it, "
        f"or give {form} more weight. Does the prompt ask for the same form as the reward?",
        metrics=(f"rewards/{form}/mean",),
    )


def no_signal(share: Curve, accuracy: Curve | None, *, label: str) -> Finding | None:
    """Most groups teach nothing, since all their answers are worth the same; `accuracy` (None: not known) says why."""
    if not share.values or (after := move(share).after) < _NO_SIGNAL_SHARE:
        return None
    level = move(accuracy).after if accuracy is not None and accuracy.values else None
    solved = level is not None and level > 0.5
    known = "" if level is None else f" {label} is {number(level)}."
    return Finding(
        rule="no-signal",
        level="note" if solved else "warning",
        title="Most prompts are solved every time" if solved else "Most prompts teach nothing",
        text=f"In {percent(after)} of the groups all answers are worth the same, so they teach nothing.{known}",
        advice="Take harder problems, or fewer completions per prompt."
        if solved
        else "Where they are worth little, the task is too hard as it stands: more completions per prompt, easier "
        "prompts, a reward that pays for parts, or a stronger model to start from.",
        metrics=("groups/no_signal_share",),
    )


def failing(failed: Curve, *, reward: str) -> Finding | None:
    """A reward could not score some completions."""
    if not (total := sum(failed.values)):
        return None
    steps = sum(value > 0 for value in failed.values)
    return Finding(
        rule="failing",
        level="warning",
        title=f"{reward} failed on some completions",
        text=f"Scores that could not be computed: {number(total)}, in {steps} of {len(failed)} steps. Their "
        "completions were left out of the update.",
        advice="The reasons stand beside the completions below (filter: a score failed).",
        metrics=(f"rewards/{reward}/failed",),
    )


def unscored(no_total: Curve) -> Finding | None:
    """Completions without a total."""
    if not (total := sum(no_total.values)):
        return None
    return Finding(
        rule="unscored",
        level="warning",
        title="Completions without a total",
        text=f"So many train nothing, because a reward failed on them or none applied: {number(total)}.",
        advice="Each row should be claimed by at least one reward: compare the task column with the rewards' tasks.",
        metrics=("reward/no_total",),
    )


def mixed_groups(mixed: Curve, *, reward: str) -> Finding | None:
    """A reward applied to some completions of a prompt and not to others."""
    if not any(mixed.values):
        return None
    steps = sum(value > 0 for value in mixed.values)
    return Finding(
        rule="mixed-groups",
        level="warning",
        title=f"{reward} treats answers to one prompt differently",
        text=f"In {steps} steps it applied to some completions of a prompt and not to others, which are then compared "
        "by different measures.",
        advice="Let it return None by what the row is, not by what the completion says; a bad completion is a 0.",
        metrics=(f"rewards/{reward}/mixed_groups",),
    )

"""Whether the task is being learnt: accuracy against the spread within groups, goals against each other, held-out rows.

The observations behind the first rules: a task that is learnt shows accuracy rising and the spread falling; a spread
that stays near 0.2 while accuracy stands still is the limit of the task or of the data, not of the settings.
"""

from __future__ import annotations

from collections.abc import Mapping

from grpo_core.report.findings.finding import Finding, number
from grpo_core.report.trends import Curve, Move, move

__all__ = ["goals_apart", "held_out", "learning", "names_listed"]

LIMIT_SPREAD = (0.1, 0.35)
"""The spread within groups that speaks of a limit: "near 0.2"."""
LEAST_CHANGE = 0.03
"""A change of a score between 0 and 1 that is worth a word."""
SOLVED = 0.95

_TRADE_OFF = (
    "Look at completions that please the one and not the other, and change the weights; a reward that stays ignored "
    "needs more weight, or to be made easier at first."
)


def learning(accuracy: Curve, spread: Curve, *, label: str, metric: str, verifies: bool) -> Finding | None:
    """One sentence about accuracy and `reward/group_std`; None when they are too short, or accuracy fell (a collapse is
    another rule's). `label` is what stands for accuracy, `metric` its curve; only where it `verifies` is 1 the most it
    can be."""
    if not (accuracy.enough and spread.enough):
        return None
    level, width = move(accuracy), move(spread)
    metrics = (metric, "reward/group_std")
    solved = verifies and level.after >= SOLVED
    if level.rose(LEAST_CHANGE):
        return _rising(level, width, label, metrics, solved=solved)
    if level.fell(LEAST_CHANGE):
        return None
    return _standing(level, width, label, metrics, solved=solved)


def _rising(level: Move, width: Move, label: str, metrics: tuple[str, ...], *, solved: bool) -> Finding:
    rise = f"{label} rose from {number(level.before)} to {number(level.after)}"
    if solved:
        return Finding(
            rule="learnt",
            level="good",
            title="The task is learnt",
            text=f"{rise}; the spread within groups is {number(width.after)}.",
            advice="Little is left to learn here: stop, or take harder problems.",
            metrics=metrics,
        )
    if width.fell(0.0):
        return Finding(
            rule="learnt",
            level="good",
            title="The task is being learnt",
            text=f"{rise}, and the spread within groups fell from {number(width.before)} to {number(width.after)}: "
            "answers to the same prompt become alike because they become right.",
            metrics=metrics,
        )
    return Finding(
        rule="learning",
        level="good",
        title="It is learning",
        text=f"{rise}; the spread within groups has not fallen yet ({number(width.before)}, now "
        f"{number(width.after)}), so there is still something to learn from.",
        advice="More steps are likely to help.",
        metrics=metrics,
    )


def _standing(level: Move, width: Move, label: str, metrics: tuple[str, ...], *, solved: bool) -> Finding:
    still = f"{label} stands at {number(level.after)} (it began at {number(level.before)})"
    if solved:
        return Finding(
            rule="solved",
            level="note",
            title="There was nothing to learn",
            text=f"{still}: the model could do this before.",
            advice="Take harder problems.",
            metrics=metrics,
        )
    if LIMIT_SPREAD[0] <= width.after <= LIMIT_SPREAD[1] and width.flat(0.05):
        return Finding(
            rule="limit",
            level="note",
            title="At the limit of the task or the data",
            text=f"{still} while the spread within groups stays at {number(width.after)}.",
            advice="This picture usually means that the model, the data or the reward's own noise set the limit, not "
            "the settings. If nothing ever moved, make sure first that the learning rate is not simply too low.",
            metrics=metrics,
        )
    return Finding(
        rule="not-learning",
        level="warning",
        title="Nothing was learnt",
        text=f"{still}; the spread within groups is {number(width.after)}.",
        advice="With a spread near 0 there is nothing to learn from: more completions per prompt, easier prompts, or a "
        "reward that pays for parts. With a wide one, look at the answers first, then raise the learning rate.",
        metrics=metrics,
    )


def goals_apart(rewards: Mapping[str, Curve]) -> Finding | None:
    """Some rewards rose while others fell."""
    moves = {name: move(curve) for name, curve in rewards.items() if curve.enough}
    up = [name for name, one in moves.items() if one.rose(LEAST_CHANGE)]
    down = [name for name, one in moves.items() if one.fell(LEAST_CHANGE)]
    if not up or not down:
        return None
    falls = ", ".join(f"{name} fell from {number(moves[name].before)} to {number(moves[name].after)}" for name in down)
    return Finding(
        rule="goals-apart",
        level="warning",
        title="One reward rose at the cost of another",
        text=f"{names_listed(up)} rose while {falls}.",
        advice=_TRADE_OFF,
        metrics=tuple(f"rewards/{name}/mean" for name in (*up, *down)),
    )


def held_out(evaluation: Curve, training: Curve, *, error: float, label: str, metric: str) -> Finding | None:
    """What became of held-out prompts, first evaluation against last, in a run that is long enough to be read; `error`
    is the standard error of that change, `label` names the number in a sentence."""
    if len(evaluation) < 2 or not training.enough:
        return None
    before, after = evaluation.values[0], evaluation.values[-1]
    text = (
        f"{label} on held-out prompts went from {number(before)} (step {evaluation.steps[0]}) to {number(after)} "
        f"(step {evaluation.steps[-1]})"
    )
    change = Move(before, after, error)
    if change.rose(LEAST_CHANGE):
        return Finding(
            rule="held-out", level="good", title="Better on unseen prompts", text=f"{text}.", metrics=(metric,)
        )
    if move(training).rose(LEAST_CHANGE):
        return Finding(
            rule="overfit",
            level="warning",
            title="Better in training only",
            text=f"{text}, while the same number rose in training.",
            advice="The training rows are few or repeat, or they differ from the held-out ones; or the reward can be "
            "pleased without being right: read completions.",
            metrics=(metric,),
        )
    if change.fell(LEAST_CHANGE):
        return Finding(
            rule="held-out", level="warning", title="Worse on unseen prompts", text=f"{text}.", metrics=(metric,)
        )
    return Finding(
        rule="held-out", level="note", title="Unchanged on unseen prompts", text=f"{text}.", metrics=(metric,)
    )


def names_listed(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))

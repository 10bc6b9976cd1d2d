"""Every completion of a run is read once for the quantiles; a fair part of them, whole groups, goes into the page.

What stays out is counted and said. The part is taken by place, never by score: the first groups of evenly spread
steps (prompts stand in a step in random order), and in addition those on which a reward failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from grpo_core.report.answers import Answer, groups_of, prompt_size, read_answers
from grpo_core.report.run import RunFolder
from grpo_core.report.thinning import evenly_spread

__all__ = ["QUANTILES", "Kept", "Share", "StepSummary", "keep_completions", "quantiles", "share_out", "summarise"]

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
TOTAL, TOKENS = "reward/mean", "completions/length_mean"
"""Quantiles have the name of the curve they belong to."""
_MOST_FAILED = 200


@dataclass(slots=True, kw_only=True)
class StepSummary:
    """What is kept of all completions of a step."""

    step: int
    completions: int
    groups: int
    bytes: int
    failed: int
    """Completions on which a reward failed."""
    quantiles: dict[str, tuple[float, ...]]
    """Name of a curve -> `QUANTILES` of the values it is the mean of."""
    paid: dict[str, int] = field(default_factory=dict)
    """Reward -> completions that some other reward pays (more than 0), of those it applies to."""
    paid_without: dict[str, int] = field(default_factory=dict)
    """Reward -> those of them that it gives 0 or less itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How much of the completions goes into the page: the first `groups` groups of each step in `steps`."""

    steps: tuple[int, ...]
    groups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The completions of the page."""

    answers: tuple[Answer, ...]
    total: int
    """All completions of the run."""
    text: str
    """A sentence about what was kept."""


def summarise(run: RunFolder) -> tuple[StepSummary, ...]:
    """Read all completions of a run, one step at a time."""
    summaries = []
    for file in run.completions:
        answers = list(read_answers(file, run.notes))
        if answers:
            summaries.append(summary_of(file.step, answers))
    return tuple(summaries)


def summary_of(step: int, answers: Sequence[Answer]) -> StepSummary:
    """Numbers of one step."""
    names = list(dict.fromkeys(name for answer in answers for name in answer.scores))
    values: dict[str, list[float | None]] = {
        TOTAL: [answer.total for answer in answers],
        TOKENS: [float(answer.tokens) for answer in answers],
    }
    values |= {f"rewards/{name}/mean": [answer.scores.get(name) for answer in answers] for name in names}
    known = {name: [value for value in column if value is not None] for name, column in values.items()}
    groups = groups_of(answers)
    summary = StepSummary(
        step=step,
        completions=len(answers),
        groups=len(groups),
        bytes=sum(answer.size() for answer in answers) + sum(prompt_size(group[0]) for group in groups),
        failed=sum(bool(answer.failures) for answer in answers),
        quantiles={name: quantiles(column) for name, column in known.items() if column},
    )
    for name in names:
        paid = [answer for answer in answers if answer.scores.get(name) is not None and _paid_by_others(answer, name)]
        summary.paid[name] = len(paid)
        summary.paid_without[name] = sum((answer.scores[name] or 0.0) <= 0 for answer in paid)
    return summary


def quantiles(values: Sequence[float]) -> tuple[float, ...]:
    """`QUANTILES` of some values, interpolated linearly between neighbours."""
    ordered = sorted(values)
    found = []
    for share in QUANTILES:
        place = share * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        found.append(ordered[low] + (ordered[high] - ordered[low]) * (place - low))
    return tuple(found)


def keep_completions(run: RunFolder, summaries: Sequence[StepSummary], *, budget_bytes: int) -> Kept:
    """Take a part of about `budget_bytes` of the completions."""
    share = share_out(summaries, budget_bytes=budget_bytes)
    chosen, failed = set(share.steps), 0
    kept: list[Answer] = []
    failing = {summary.step for summary in summaries if summary.failed}
    for file in run.completions:
        if file.step not in chosen | failing:
            continue
        answers = list(read_answers(file, []))  # what is wrong with it was noted by `summarise`
        groups = groups_of(answers)
        inside = share.groups if file.step in chosen else 0
        kept += [answer for group in groups[:inside] for answer in group]
        for answer in (answer for group in groups[inside:] for answer in group):
            if answer.failures and failed < _MOST_FAILED:
                kept.append(answer)
                failed += 1
    total = sum(summary.completions for summary in summaries)
    return Kept(answers=tuple(kept), total=total, text=_said(len(kept), total, failed, share, summaries))


def share_out(summaries: Sequence[StepSummary], *, budget_bytes: int) -> Share:
    """Which steps and how many groups of each fit the budget: all, or one group of as many steps as possible, first and
    last always among them, or several groups of every step."""
    steps = [summary.step for summary in summaries]
    groups = sum(summary.groups for summary in summaries)
    most = max((summary.groups for summary in summaries), default=0)
    allowed = budget_bytes * groups // max(sum(summary.bytes for summary in summaries), 1)
    if allowed >= groups:
        return Share(steps=tuple(steps), groups=most)
    spread = evenly_spread(steps, max(allowed, 2))
    return Share(steps=tuple(spread), groups=max(allowed // len(spread), 1))


def _paid_by_others(answer: Answer, name: str) -> bool:
    return any((score or 0.0) > 0 for other, score in answer.scores.items() if other != name)


def _said(kept: int, total: int, failed: int, share: Share, summaries: Sequence[StepSummary]) -> str:
    if kept == total:
        return f"All {total:,} completions of the run are here."
    groups = "the first group" if share.groups == 1 else f"the first {share.groups} groups"
    steps = "each step" if len(share.steps) == len(summaries) else f"each of {len(share.steps)} steps, evenly spread"
    more = f", and {failed} more on which a reward failed" if failed else ""
    return (
        f"{kept:,} of {total:,} completions are here, to keep this file small: {groups} of {steps}{more}. "
        "Curves and quantiles count all of them; the rest is in the run's completions folder."
    )

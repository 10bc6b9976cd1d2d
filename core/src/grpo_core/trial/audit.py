"""An audit: a reward on the controls of a dataset, and on the same completions scored in other ways.

    samples → reference found → controls → scores → findings
                                   └→ a few rows again, reversed, one by one, in another thread → the same scores?

What it pays for is a table; a control that fails is named with an example.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from grpo_core.errors import DataError, UsageError
from grpo_core.reward.scoring import Scorer
from grpo_core.trial.controls import Control, Rows, controls
from grpo_core.trial.findings import Example, Finding
from grpo_core.trial.grid import Scores, Written, mean_of, score_grid
from grpo_core.trial.reference import FORMS, Reference, candidates, is_well_known, reference_text
from grpo_core.trial.ways import other_ways
from grpo_core.types import Failed, Outcome, Sample

__all__ = ["Audit", "Bounds", "audit"]

_FEW = 8
"""Rows for what is scored several times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What counts as paid, on average over the rows."""

    high: float = 0.9
    """A reference must score at least this."""
    low: float = 0.1
    """What is no answer may score at most this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What was found."""

    rows: int
    """Rows looked at."""
    unclaimed: int
    """Rows left out because the reward is not meant for their task."""
    reference: Reference | None
    """Where the right answer is, in the form that pays."""
    skipped: str | None
    """Why there are no controls about the right answer."""
    controls: tuple[Finding, ...]
    """What it pays for."""
    ways: tuple[Finding, ...]
    """Whether its scores depend on how it is called."""

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The controls that fail."""
        return tuple(finding for finding in (*self.controls, *self.ways) if finding.problem is not None)


def audit(
    scorer: Scorer, samples: Sequence[Sample], *, bounds: Bounds = Bounds(), reference_column: str | None = None
) -> Audit:
    """Audit the only reward of a scorer on rows; `reference_column` says where the right answer is.

    Rows of other tasks are left out. Raises `DataError` when none is left, `UsageError` for a column without answers.
    """
    (reward,) = scorer.rewards
    mine = [sample for sample in samples if reward.claims(sample)]
    if not mine:
        raise DataError(
            f"reward '{reward.planned.name}' is meant for the tasks {', '.join(reward.planned.tasks)}, and no row has "
            "such a task",
            hint="Look at more rows with --rows, or at another dataset.",
        )
    rows, skipped = _with_reference(scorer, mine, reference_column)
    made = list(controls(rows))
    written = [[control.write(index) for control in made] for index in range(len(mine))]
    scores = score_grid(scorer, mine, written)
    findings = [
        _finding(control, mine, [row[place] for row in written], [row[place] for row in scores], bounds)
        for place, control in enumerate(made)
    ]
    few = slice(0, _FEW)
    return Audit(
        rows=len(mine),
        unclaimed=len(samples) - len(mine),
        reference=rows.reference,
        skipped=skipped,
        controls=tuple(findings),
        ways=(*other_ways(scorer, mine[few], written[few], scores[few]), _tells_apart(written, scores, rows, bounds)),
    )


def _with_reference(scorer: Scorer, samples: Sequence[Sample], column: str | None) -> tuple[Rows, str | None]:
    """The rows with where their right answers are, or why that is not known."""
    (reward,) = scorer.rewards
    bound = reward.binding.columns.values()
    there = frozenset(name for sample in samples for name in sample.columns)
    chosen = candidates(bound, there, samples) if column is None else (_checked(column, there, samples),)
    knows = column is not None or any(name not in ("task", "dataset") for name in bound)
    if chosen:
        best, mean = _best(scorer, samples[:_FEW], chosen)
        if column is not None or is_well_known(best.column) or (mean is not None and mean > 0.0):
            return Rows(samples, best, knows), None
        return Rows(samples, None, knows), (
            "the rows hold none: no column has a usual name of it, and what the reward reads is not paid as an answer; "
            "--reference-column names one"
        )
    if knows:
        return Rows(samples, None, knows), "no column looks like the right answer; --reference-column names one"
    return Rows(samples, None, knows), "it reads no column of the data, so it cannot know the right answer"


def _checked(column: str, there: frozenset[str], samples: Sequence[Sample]) -> str:
    if not any(reference_text(sample.columns.get(column)) for sample in samples):
        raise UsageError(
            f"--reference-column {column}: no row has a right answer in it",
            hint=f"The dataset has {', '.join(sorted(there)) or 'no columns besides the prompt'}.",
        )
    return column


def _best(scorer: Scorer, samples: Sequence[Sample], columns: Sequence[str]) -> tuple[Reference, float | None]:
    """The column and form that pay most, the likeliest of equals; and how much."""
    pairs = [
        Reference(column=column, form=form, continues=continues)
        for continues in (False, True)
        for column in columns
        for form in FORMS
    ]
    written = [[_or_none(pair, sample) for pair in pairs] for sample in samples]
    scores = score_grid(scorer, samples, written)

    def pays(place: int) -> float:
        mean = mean_of([row[place] for row in scores])
        return -math.inf if mean is None else mean

    best = max(range(len(pairs)), key=lambda place: (pays(place), -place))
    return pairs[best], mean_of([row[best] for row in scores])


def _or_none(pair: Reference, sample: Sample) -> str | None:
    text = pair.of(sample)
    return None if text is None else pair.write(text)


def _finding(
    control: Control, samples: Sequence[Sample], texts: Sequence[str | None], scores: Sequence[Outcome], bounds: Bounds
) -> Finding:
    made = [(s, t, o) for s, t, o in zip(samples, texts, scores, strict=True) if t is not None]
    outcomes = [outcome for _, _, outcome in made]
    finding = Finding(
        name=control.name,
        judged=control.judged,
        mean=mean_of(outcomes),
        count=len(made),
        none=sum(outcome is None for outcome in outcomes),
        failed=sum(isinstance(outcome, Failed) for outcome in outcomes),
    )
    problem, wrong = _problem(finding, bounds)
    if problem is None:
        return finding
    sample, text, outcome = next((each for each in made if wrong(each[2])), made[0])
    example = Example(sample_id=sample.id, completion=text, outcome=outcome)
    return replace(finding, problem=problem, example=example)


def _problem(finding: Finding, bounds: Bounds) -> tuple[str | None, Callable[[Outcome], bool]]:
    """What is wrong, and which scores show it."""
    mean = finding.mean
    if finding.failed:
        return f"its score failed on {finding.failed} of {finding.count}", lambda o: isinstance(o, Failed)
    if finding.judged == "pays" and finding.count and mean is None:
        return "it does not apply to any right answer", lambda o: o is None
    if finding.judged == "pays" and mean is not None and mean < bounds.high:
        return f"a right answer scores {mean:.3g}, less than {bounds.high:g}", lambda o: _number(o) < bounds.high
    if finding.judged == "refuses" and mean is not None and mean > bounds.low:
        return f"it is no answer and scores {mean:.3g}, more than {bounds.low:g}", lambda o: _number(o) > bounds.low
    return None, lambda _: False


def _number(outcome: Outcome) -> float:
    return outcome if isinstance(outcome, float) else math.nan


def _tells_apart(written: Written, scores: Scores, rows: Rows, bounds: Bounds) -> Finding:
    """Whether there is anything to learn: some two completions score differently. Not asked where all that could be
    made is no answer, and gets none."""
    numbers = {outcome for row in scores for outcome in row if isinstance(outcome, float)}
    if rows.reference is None and rows.knows and len(numbers) == 1 and max(numbers) <= bounds.low:
        return Finding(name="tells completions apart", judged="pays", count=0)
    finding = Finding(
        name="tells completions apart", judged="pays", count=sum(t is not None for row in written for t in row)
    )
    if len(numbers) > 1:
        return finding
    value = f"the same score, {numbers.pop():g}" if numbers else "no score"
    return replace(finding, problem=f"every control gets {value}: there is nothing to learn")

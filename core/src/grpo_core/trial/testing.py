"""Cases run: each scored as a run would score it, and compared with what it must be.

Cases of one set of options are scored together, as one step, unless the reward looks at a whole step: then each case is
a step of its own. A column that only some cases have is None in the others, as in a dataset.

Place in the flow: cases → groups → scored → **verdicts**.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grpo_core.data.samples import with_all
from grpo_core.errors import DataError, GrpoError
from grpo_core.recipe.plan import PlannedReward
from grpo_core.recipe.schema import ScoringSettings
from grpo_core.reward.scoring import Scorer
from grpo_core.trial.cases import Case, Expected
from grpo_core.trial.scoring import make_group, open_scorer, score
from grpo_core.types import BuildContext, Failed, Message, Outcome, RolloutGroup, Sample, ScoredGroup

__all__ = ["Verdict", "run_cases"]

Plan = Callable[[Mapping[str, Any]], PlannedReward]
"""Plans the reward with these options in place of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One completion of a case, judged."""

    case: Case
    """The case."""
    position: int
    """Which of its completions."""
    outcome: Outcome
    """What it scored."""

    @property
    def expected(self) -> Expected:
        """What it must score."""
        return self.case.expected[self.position]

    @property
    def passed(self) -> bool:
        """Whether it scored that."""
        if isinstance(self.outcome, Failed):
            return self.expected == "failed"
        if self.outcome is None or self.expected is None:
            return self.outcome is self.expected
        return not isinstance(self.expected, str) and abs(self.outcome - self.expected) <= self.case.tolerance


def run_cases(
    plan: Plan, cases: Sequence[Case], *, settings: ScoringSettings, context: BuildContext
) -> tuple[Verdict, ...]:
    """Score all cases, and judge every completion of them, in order.

    Raises `RewardError` for a reward that cannot be bound to the cases' columns, and `DataError` that names the case
    whose options are wrong.
    """
    columns = frozenset(name for case in cases for name in case.columns)
    scored: dict[int, ScoredGroup] = {}
    for places in _by_options(cases):
        planned = _planned(plan, cases[places[0]])
        groups = [_group(cases[place], place, columns) for place in places]
        with open_scorer([planned], settings, columns, context) as scorer:
            scored |= zip(places, _score(scorer, groups), strict=True)
    return tuple(verdict for place, case in enumerate(cases) for verdict in _verdicts(case, scored[place]))


def _by_options(cases: Sequence[Case]) -> Iterator[list[int]]:
    """The positions of the cases with the same options."""
    places: dict[str, list[int]] = {}
    for place, case in enumerate(cases):
        places.setdefault(json.dumps(case.options, sort_keys=True), []).append(place)
    yield from places.values()


def _planned(plan: Plan, case: Case) -> PlannedReward:
    try:
        return plan(case.options)
    except GrpoError as error:
        if not case.options:
            raise
        raise DataError(f"{case.place}: {error.message}", hint=error.hint) from error


def _group(case: Case, place: int, columns: frozenset[str]) -> RolloutGroup:
    sample = Sample(
        messages=(Message(role="user", content=case.prompt),), columns=dict(case.columns), id=f"case-{place:06d}"
    )
    return make_group(
        with_all(sample, columns),
        case.texts,
        prompt=case.prompt,
        token_ids=case.completion_ids,
        finish_reasons=[case.finish_reason] * len(case.texts),
    )


def _score(scorer: Scorer, groups: Sequence[RolloutGroup]) -> list[ScoredGroup]:
    steps = [[group] for group in groups] if "step" in scorer.scopes() else [groups]
    return [one for step in steps for one in score(scorer, step)]


def _verdicts(case: Case, scored: ScoredGroup) -> Iterator[Verdict]:
    (outcomes,) = scored.outcomes.values()
    for position, outcome in enumerate(outcomes):
        yield Verdict(case=case, position=position, outcome=outcome)

"""Rewards built and bound at launch: everything that is wrong with them is found before a model loads.

Place in the flow: plan + the dataset's columns → **checked rewards** … completions → call.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from grpo_core.errors import GrpoError, RewardError
from grpo_core.plugins.specs import Scope
from grpo_core.plugins.targets import build_target
from grpo_core.recipe.plan import PlannedReward
from grpo_core.reward.binding import Binding, bind
from grpo_core.reward.foreign import refuse_foreign
from grpo_core.reward.row_text import row_text
from grpo_core.types import BuildContext, Sample
from grpo_core.types.reserved import RESERVED_NAMES

__all__ = ["BoundReward", "check_rewards", "claim_warnings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundReward:
    """A reward that can be called."""

    planned: PlannedReward
    """How it is used."""
    function: Callable[..., object]
    """What is called."""
    binding: Binding
    """With which arguments."""

    def claims(self, sample: Sample) -> bool:
        """Whether it is meant for the sample: by its tasks, where the sample has one."""
        return claims(self.planned, sample.task)


def claims(planned: PlannedReward, task: str | None) -> bool:
    """Whether a reward is meant for a task. A sample without a `task` goes to every reward, as does a reward without
    `tasks` get every sample."""
    return task is None or not planned.tasks or task in planned.tasks


def check_rewards(
    rewards: Sequence[PlannedReward], columns: Iterable[str], context: BuildContext
) -> tuple[BoundReward, ...]:
    """Build all rewards and bind them to the dataset's columns.

    Raises the one error there is as it is, or a `RewardError` that lists all of them.
    """
    columns = frozenset(columns)
    errors: list[GrpoError] = [*_column_errors(columns), *_name_errors(rewards)]
    bound: list[BoundReward] = []
    for planned in rewards:
        try:
            bound.append(_check(planned, columns, context))
        except GrpoError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise RewardError("\n  ".join([f"{len(errors)} problems with the rewards:", *map(str, errors)]))
    return tuple(bound)


def claim_warnings(rewards: Sequence[PlannedReward], samples: Iterable[Sample]) -> tuple[str, ...]:
    """A sentence for each task of the dataset that no reward is meant for, with the first of its rows, and for each
    reward that is meant for no task there is.

    Raises:
        RewardError: no reward is meant for any of the tasks, so nothing would be learned.
    """
    tasks = Counter[str | None]()
    first: dict[str | None, Sample] = {}
    for sample in samples:
        tasks[sample.task] += 1
        first.setdefault(sample.task, sample)
    unclaimed = [task for task in tasks if not any(claims(reward, task) for reward in rewards)]
    if tasks and len(unclaimed) == len(tasks):
        raise RewardError(
            f"no reward is meant for any of the dataset's tasks ({', '.join(map(repr, tasks))}): nothing would be "
            f"learned; the rewards' tasks are {', '.join(sorted({t for r in rewards for t in r.tasks}))}",
            hint="Choose rewards for these tasks (`grpoctl rewards list` shows them), or have one score all rows: "
            "--set 'rewards.NAME.tasks=[]'.",
        )
    idle = [reward for reward in rewards if not any(claims(reward, task) for task in tasks)]
    return (
        *(
            f"no reward is meant for task '{task}': its {tasks[task]} samples train nothing "
            f"(the rewards' tasks: {', '.join(sorted({t for r in rewards for t in r.tasks}))}); the first is "
            f"{first[task].id}: {row_text(first[task])}"
            for task in unclaimed
        ),
        *(
            f"reward '{reward.name}' is meant for {_quoted(reward.tasks)}, and no sample has such a task"
            for reward in idle
            if tasks
        ),
    )


def _check(planned: PlannedReward, columns: frozenset[str], context: BuildContext) -> BoundReward:
    component = planned.component
    function = build_target(component.target, component.options_model, component.options, context)
    planned = planned.model_copy(update={"scope": _scope_of(function, planned)})
    if planned.budget_s is not None and (planned.runs_in != "worker" or planned.scope != "sample"):
        raise RewardError(
            f"reward '{planned.name}' has a budget of {planned.budget_s:g} s an answer, which only a worker can keep, "
            f"one sample at a time; it runs in {planned.runs_in}, scope {planned.scope}",
            hint="Leave out `runs_in`, or set it to `worker`.",
        )
    if not math.isfinite(planned.weight):
        raise RewardError(f"the weight of reward '{planned.name}' is {planned.weight}, not a finite number")
    refuse_foreign(function, name=planned.name, target=component.target, columns=columns, renames=planned.columns)
    binding = bind(function, name=planned.name, columns=columns, renames=planned.columns)
    assert callable(function)
    return BoundReward(planned=planned, function=function, binding=binding)


def _scope_of(function: object, planned: PlannedReward) -> Scope:
    """What the plan says, else the function itself, else one completion."""
    said: Scope = planned.scope or getattr(function, "scope", None) or "sample"
    if said not in get_args(Scope):
        raise RewardError(
            f"the function of reward '{planned.name}' has the scope {said!r}",
            hint=f"Set its attribute `scope` to {', '.join(map(repr, get_args(Scope)))}; where it means another thing, "
            f"rename it and set rewards.{planned.name}.scope.",
        )
    return said


def _column_errors(columns: frozenset[str]) -> list[RewardError]:
    return [
        RewardError(
            f"the dataset has a column '{column}', a name that means the run's own {column} to every reward",
            hint=f"Rename the column: --columns {column}=my_{column}, or leave it out of the data.",
        )
        for column in sorted(columns & RESERVED_NAMES)
    ]


def _name_errors(rewards: Sequence[PlannedReward]) -> list[RewardError]:
    counts = Counter(reward.name for reward in rewards)
    return [
        RewardError(f"{count} rewards are called '{name}'", hint="Give each its own `name:` in the recipe.")
        for name, count in counts.items()
        if count > 1
    ]


def _quoted(tasks: Sequence[str]) -> str:
    return " and ".join(f"'{task}'" for task in tasks)

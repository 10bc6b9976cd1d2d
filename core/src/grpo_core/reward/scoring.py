"""Scores rollout groups as they arrive.

A reward of scope sample or group starts with its group: in a worker, on the event loop, or right away in this thread.
A reward of scope step starts with `finish`, which then waits for everything. Which calls run where changes nothing
about the scores, and neither does the order of groups.

Place in the flow: rollout groups → **scoring** → scored groups → advantages.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from grpo_core.errors import RewardError
from grpo_core.plugins.specs import Scope
from grpo_core.recipe.plan import PlannedReward
from grpo_core.recipe.schema import ScoringSettings
from grpo_core.reward.binding import Answer, RunValues
from grpo_core.reward.call import CallResult, call, is_async
from grpo_core.reward.check import BoundReward, check_rewards, claim_warnings
from grpo_core.reward.failures import FailureWatch
from grpo_core.reward.loop_thread import LoopThread
from grpo_core.reward.metrics import reward_metrics
from grpo_core.reward.outcomes import weighed
from grpo_core.reward.totals import total_of
from grpo_core.reward.wire import WorkerTarget
from grpo_core.reward.workers import Job, WorkerPool, workers_for
from grpo_core.types import BuildContext, Outcome, RolloutGroup, ScoredGroup

__all__ = ["ALL_SCOPES", "Scorer", "Scoring", "check_rewards", "claim_warnings", "reward_metrics"]

ALL_SCOPES: frozenset[Scope] = frozenset(("sample", "group", "step"))
Records = Mapping[str, tuple[object, ...]]

Pending = Callable[[], CallResult]
"""Waits for a call's result."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a completion's outcome will be: a call, and the position in it."""

    pending: Pending
    position: int

    def outcome(self) -> Outcome:
        return self.pending().outcomes[self.position]

    def records(self) -> dict[str, object]:
        return {name: values[self.position] for name, values in self.pending().records.items()}


Places = list[_Place | None]
"""[G] Of one reward and one group; None where the reward is not meant for the sample."""


class Scorer:
    """A run's rewards, ready to score step after step."""

    def __init__(
        self,
        rewards: Sequence[PlannedReward],
        scoring: ScoringSettings,
        columns: Iterable[str],
        context: BuildContext,
    ) -> None:
        """Build, bind and check the rewards and start what they run in; raises `RewardError` or `PluginError`."""
        self.rewards = check_rewards(rewards, columns, context)
        self.settings = scoring
        self.failures = FailureWatch(max_failed_share=scoring.max_failed_share)
        if scoring.reduce == "mean" and any(reward.weight < 0 for reward in rewards):
            raise RewardError(
                "a weighted mean of scores needs weights of at least 0",
                hint="Set scoring.reduce to sum, or use positive weights.",
            )
        # First those that run elsewhere, so that they are under way while this thread works itself.
        self.order = sorted(range(len(self.rewards)), key=lambda index: not _runs_elsewhere(self.rewards[index]))
        self._loop = LoopThread()
        self._pool = _start_pool(self.rewards, scoring, context)

    def begin(
        self, *, step: int, epoch: float, progress: float, max_steps: int, scopes: frozenset[Scope] = ALL_SCOPES
    ) -> Scoring:
        """Begin to score the groups of a step, by the rewards of some scopes. Finish it before the next."""
        if self._pool:
            self._pool.begin_step()
        return Scoring(self, RunValues(step=step, epoch=epoch, progress=progress, max_steps=max_steps), scopes)

    def scopes(self) -> frozenset[Scope]:
        """What the rewards of this run must see at once."""
        return frozenset(reward.planned.scope for reward in self.rewards if reward.planned.scope is not None)

    def join(self, one: ScoredGroup, outcomes: Mapping[str, Sequence[Outcome]], records: Records) -> ScoredGroup:
        """A group with the outcomes of further rewards, which were scored elsewhere, in place of its own."""
        merged = {name: tuple(outcomes.get(name, own)) for name, own in one.outcomes.items()}
        return replace(one, outcomes=merged, totals=self._totals(merged), records={**records, **one.records})

    def start(self, index: int, answers: Sequence[Answer], run: RunValues) -> Pending:
        """Start one call of reward `index` on some answers; what is returned waits for its result."""
        reward = self.rewards[index]
        arguments = reward.binding.arguments(answers, run)
        count, records, deadline_s = len(answers), reward.binding.records, reward.planned.deadline_s
        if reward.planned.runs_in == "worker":
            assert self._pool is not None
            job = Job(
                reward=reward.planned.name,
                arguments=arguments,
                count=count,
                records=records,
                budget_s=reward.planned.budget_s,
                deadline_s=deadline_s,
                over_budget=float(getattr(reward.function, "over_budget_score", 0.0)),
            )
            return self._pool.submit(job).result
        function = cast(Any, reward.function)
        if is_async(function):
            return self._loop.submit(function, arguments, count=count, records=records, deadline_s=deadline_s)
        result = call(function, arguments, count=count, records=records, deadline_s=deadline_s)
        return lambda: result

    def _totals(self, outcomes: Mapping[str, Sequence[Outcome]]) -> tuple[float | None, ...]:
        weights = [reward.planned.weight for reward in self.rewards]
        members = zip(*outcomes.values(), strict=True)
        return tuple(total_of(member, weights, self.settings.reduce) for member in members)

    def close(self) -> None:
        """End what rewards hold (`aclose`), workers and event loop."""
        closers = (getattr(reward.function, "aclose", None) for reward in self.rewards)
        self._loop.close(closer for closer in closers if callable(closer))
        if self._pool:
            self._pool.close()


@dataclass(slots=True)
class Scoring:
    """The scoring of one step."""

    scorer: Scorer
    run: RunValues
    scopes: frozenset[Scope] = ALL_SCOPES
    _groups: list[RolloutGroup] = field(default_factory=list)
    _places: list[list[Places]] = field(default_factory=list)
    _scored_once: dict[Hashable, _Place] = field(default_factory=dict)

    def add(self, group: RolloutGroup) -> None:
        """Take a finished group, and start what can start."""
        self._groups.append(group)
        places: list[Places] = [[None] * len(group.completions) for _reward in self.scorer.rewards]
        for index in self.scorer.order:
            reward = self.scorer.rewards[index]
            if reward.planned.scope in self.scopes and reward.claims(group.sample):
                if reward.planned.scope == "sample":
                    self._start_samples(index, _answers(group), places[index])
                elif reward.planned.scope == "group":
                    self._start_together(index, _answers(group), [places[index]])
        self._places.append(places)

    def finish(self, *, watched: bool = True) -> tuple[ScoredGroup, ...]:
        """Wait for all scores; one scored group a group, in the order they were added.

        Raises `RewardError` when a reward failed on more completions than `scoring.max_failed_share` allows; answers
        that are only looked at (`watched` false) may fail in any number, and nothing is said about them.
        """
        for index in self.scorer.order:
            reward = self.scorer.rewards[index]
            if reward.planned.scope == "step" and "step" in self.scopes:
                claimed = [i for i, group in enumerate(self._groups) if reward.claims(group.sample)]
                answers = [answer for i in claimed for answer in _answers(self._groups[i])]
                if answers:
                    self._start_together(index, answers, [self._places[i][index] for i in claimed])
        scored = tuple(map(self._gather, self._groups, self._places))
        if watched:
            samples = [group.sample for group in self._groups]
            self.scorer.failures.look(scored, samples=samples, step=self.run.step)
        return scored

    def _start_samples(self, index: int, answers: Sequence[Answer], places: Places) -> None:
        """Score each answer by itself: alone in a worker, which may be lost with it; in one call elsewhere. Identical
        answers of a pure reward are scored once a step."""
        reward = self.scorer.rewards[index]
        pure = reward.planned.pure
        once = self._scored_once if pure else {}
        keys = [(index, reward.binding.identity(a) if pure else i) for i, a in enumerate(answers)]
        fresh = {key: answer for key, answer in zip(keys, answers, strict=True) if key not in once}
        waiting = list(fresh)
        size = 1 if reward.planned.runs_in == "worker" else max(len(waiting), 1)
        for batch in (waiting[i : i + size] for i in range(0, len(waiting), size)):
            pending = self.scorer.start(index, [fresh[key] for key in batch], self.run)
            once.update({key: _Place(pending, position) for position, key in enumerate(batch)})
        places[:] = [once[key] for key in keys]

    def _start_together(self, index: int, answers: Sequence[Answer], groups: Sequence[Places]) -> None:
        """Score answers in one call; `groups` are the places of those they belong to, in order."""
        pending = self.scorer.start(index, answers, self.run)
        positions = itertools.count()
        for places in groups:
            places[:] = [_Place(pending, next(positions)) for _place in places]

    def _gather(self, group: RolloutGroup, places: Sequence[Places]) -> ScoredGroup:
        outcomes = {
            reward.planned.name: tuple(
                weighed(place.outcome() if place else None, reward.planned.weight) for place in row
            )
            for reward, row in zip(self.scorer.rewards, places, strict=True)
        }
        return ScoredGroup(
            group=group, outcomes=outcomes, totals=self.scorer._totals(outcomes), records=_merged_records(places)
        )


def _answers(group: RolloutGroup) -> list[Answer]:
    return [Answer(request=group.request, completion=completion) for completion in group.completions]


def _merged_records(places: Sequence[Places]) -> dict[str, tuple[object, ...]]:
    """Name -> [G] what was recorded; the first reward's value where several record the same name."""
    members = [[place.records() for place in member if place] for member in zip(*places, strict=True)]
    names = {name: None for member in members for recorded in member for name in recorded}
    return {
        name: tuple(next((r[name] for r in member if r.get(name) is not None), None) for member in members)
        for name in names
    }


def _runs_elsewhere(reward: BoundReward) -> bool:
    return reward.planned.runs_in == "worker" or is_async(reward.function)


def _start_pool(rewards: Sequence[BoundReward], scoring: ScoringSettings, context: BuildContext) -> WorkerPool | None:
    """Workers, when some reward runs in one."""
    targets = {
        reward.planned.name: WorkerTarget(
            target=reward.planned.component.target,
            options_model=reward.planned.component.options_model,
            options=reward.planned.component.options,
        )
        for reward in rewards
        if reward.planned.runs_in == "worker"
    }
    workers = workers_for(scoring.workers, local_world_size=context.local_world_size)
    return WorkerPool(targets, workers=workers, context=context) if targets else None

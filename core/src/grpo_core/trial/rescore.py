"""A run's completions scored again, with other rewards, other options or other weights. The run is only read.

Place in the flow: stored steps → groups → scored → **compared with what the run gave**.
"""

from __future__ import annotations

import inspect
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_core.errors import RewardError
from grpo_core.loop.records import read_metrics
from grpo_core.recipe.numbers import total_steps
from grpo_core.recipe.plan import LaunchPlan, PlannedReward
from grpo_core.recipe.schema import ScoringSettings
from grpo_core.reward.binding import RunValues
from grpo_core.reward.check import BoundReward
from grpo_core.reward.scoring import Scorer
from grpo_core.trial.scoring import open_scorer, score
from grpo_core.trial.stored import Encode, StoredStep, differing, read_step, to_groups
from grpo_core.types import BuildContext, Failed, Outcome, RolloutGroup, ScoredGroup

__all__ = ["Rescored", "Score", "moments_of", "open_rescoring"]

Moments = Callable[[int], RunValues]
"""Step -> where the run stood then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The mean of a reward, or of the totals, over a step."""

    before: float | None
    """As the run recorded it; None: it did not have this reward, or no score."""
    after: float | None
    """Now; None: no score."""
    failed: int = 0
    """Scores that could not be computed now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """A step scored again."""

    step: int
    """Which."""
    rows: tuple[Mapping[str, Any], ...]
    """The records with the new `scores`, `failures`, `total` and `records`, the old ones as `old_scores` and
    `old_total`; without the advantage, which belongs to the old total."""
    total: Score
    """Of the totals."""
    rewards: Mapping[str, Score]
    """Of each reward."""
    changed: int
    """Completions whose total is another now."""
    differing: int
    """Completions whose text makes another number of tokens than were drawn; 0 where tokens are not read."""
    failure: str | None
    """The first reason why a score failed."""


def needs_tokens(scorer: Scorer) -> bool:
    """Whether some reward names token ids among its parameters; one with `**kwargs` alone gets stand-ins."""
    return any(_names(reward, "completion_ids") for reward in scorer.rewards)


def check_readable(scorer: Scorer) -> None:
    """Raise `RewardError` for a reward that names what a run does not record."""
    for reward in scorer.rewards:
        if _names(reward, "messages"):
            raise RewardError(
                f"reward '{reward.planned.name}' reads messages, and a run records only the rendered prompt",
                hint="Have it read `prompts`, the rendered text.",
            )


def moments_of(plan: LaunchPlan, metrics: Sequence[Mapping[str, object]], last_step: int) -> Moments:
    """Where the run stood in each step, as its plan and its lines of metrics.jsonl have it; `last_step` is the last one
    recorded, which is taken for the end where nothing says how long the run is."""
    epochs = {row["step"]: row["epoch"] for row in metrics if isinstance(row.get("epoch"), float)}
    total = _total_steps(plan, epochs, last_step)

    def moment(step: int) -> RunValues:
        after = epochs.get(step, 0.0)
        before = after * (step - 1) / step if isinstance(after, float) else 0.0
        return RunValues(step=step, epoch=before, progress=step / total, max_steps=total)

    return moment


@contextmanager
def open_rescoring(
    plan: LaunchPlan,
    run_dir: Path,
    rewards: Sequence[PlannedReward],
    settings: ScoringSettings,
    files: Mapping[int, Path],
) -> Iterator[Iterator[Rescored]]:
    """Bind rewards to the columns of a run's first recorded step, and give all steps in `files` scored again.

    Raises `RewardError` for a reward that cannot be bound or names what a run does not record, `DataError` for a file
    that is no record of a run, and `RecipeError` where token ids are read and the run's tokenizer is not there.
    """
    first = read_step(*next(iter(files.items())))
    context = BuildContext(seed=plan.recipe.run.seed)
    with open_scorer(rewards, settings, first.columns, context) as scorer:
        check_readable(scorer)
        encode = _tokenizer(plan) if needs_tokens(scorer) else None
        moments = moments_of(plan, read_metrics(run_dir / "metrics.jsonl"), max(files))
        yield rescore(scorer, files, moments, encode)


def rescore(
    scorer: Scorer, files: Mapping[int, Path], moments: Moments, encode: Encode | None = None
) -> Iterator[Rescored]:
    """Score recorded steps again, one by one; raises `DataError` for a file that is no record of a run."""
    for step, file in files.items():
        stored = read_step(step, file)
        groups = list(to_groups(stored, stored.columns, encode))
        yield _compared(stored, score(scorer, groups, moments(step)), groups, counts_tokens=encode is not None)


def _tokenizer(plan: LaunchPlan) -> Encode:
    from grpo_core.model.tokenizer import encode, load_tokenizer  # transformers, which most rewards do without

    tokenizer = load_tokenizer(plan.recipe.model)
    return lambda texts: encode(texts, tokenizer)


def _names(reward: BoundReward, parameter: str) -> bool:
    return parameter in inspect.signature(reward.function).parameters


def _total_steps(plan: LaunchPlan, epochs: Mapping[object, object], last_step: int) -> int:
    recipe, pace = plan.recipe, plan.batch.prompts_per_step
    known = [(step, epoch) for step, epoch in epochs.items() if isinstance(step, int) and isinstance(epoch, float)]
    if recipe.run.steps is not None:
        return recipe.run.steps
    step, epoch = next(((step, epoch) for step, epoch in known if step > 0 and epoch > 0), (0, 0.0))
    return total_steps(recipe, rows=round(step * pace / epoch)) if epoch else last_step


def _compared(
    stored: StoredStep, scored: Sequence[ScoredGroup], groups: Sequence[RolloutGroup], *, counts_tokens: bool
) -> Rescored:
    rows = [
        _row(row, one, member)
        for row, (one, member) in zip(
            stored.rows, ((one, member) for one in scored for member in range(len(one.totals))), strict=True
        )
    ]
    names = scored[0].outcomes
    return Rescored(
        step=stored.step,
        rows=tuple(rows),
        total=Score(before=_mean(row["old_total"] for row in rows), after=_mean(row["total"] for row in rows)),
        rewards={name: _score(name, rows) for name in names},
        changed=sum(row["total"] != row["old_total"] for row in rows),
        differing=differing(stored, groups) if counts_tokens else 0,
        failure=next((reason for row in rows for reason in row["failures"].values()), None),
    )


def _row(stored: Mapping[str, Any], one: ScoredGroup, member: int) -> dict[str, Any]:
    outcomes: dict[str, Outcome] = {name: own[member] for name, own in one.outcomes.items()}
    kept = {key: value for key, value in stored.items() if key != "advantage"}
    return kept | {
        "scores": {name: None if isinstance(own, Failed) else own for name, own in outcomes.items()},
        "failures": {name: own.reason for name, own in outcomes.items() if isinstance(own, Failed)},
        "total": one.totals[member],
        "records": {name: values[member] for name, values in one.records.items()},
        "old_scores": stored["scores"],
        "old_total": stored["total"],
    }


def _score(name: str, rows: Sequence[Mapping[str, Any]]) -> Score:
    return Score(
        before=_mean(row["old_scores"].get(name) for row in rows),
        after=_mean(row["scores"][name] for row in rows),
        failed=sum(name in row["failures"] for row in rows),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None

"""Behavioural collapse: rewards that fall sharply from their best, or loss, gradient norm and KL climbing together.

Pure functions over the metrics of the steps so far, and a fold over them, `CollapseWatch`, which a resumed run makes
again from metrics.jsonl: nothing of it is in a checkpoint. It only judges; `train` warns and keeps the checkpoint.

Smoothed means over the last 10 steps. How much a reward may fall is measured in two units of the run itself: the
spread of the totals within a step, and the noise of a step's mean, which small batches have much of.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grpo_core.recipe.schema import Recipe

__all__ = ["CollapseWatch", "Health", "climbs", "collapse_warning", "fall_limit", "step_noise"]

WINDOW_STEPS = 10
BEFORE_STEPS = 50
"""What the last window is compared with when things climb; at least `LEAST_BEFORE_STEPS` must be there."""
LEAST_BEFORE_STEPS = 20
CLIMB_FACTOR = 3.0
NOISES = 5.5
"""Of 100 simulated runs of 1500 steps without a trend (1 to 64 prompts of 4 to 16 completions a step) none fell by so
much, and 2 by 5.0."""
SPREADS = 0.5
SPREADS_WHEN_MOST_IS_GONE = 0.25
MOST_IS_GONE = 0.4
"""Less than this share of the best is left."""
CLIMBING = ("trainer/loss", "trainer/grad_norm", "policy/kl")

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What the numbers up to a step say."""

    reward_fall: float | None
    """How far the smoothed mean total is below its best; None before there is one."""
    collapsed: bool
    """Whether this step belongs to a collapse."""
    begins: str | None = None
    """What happened, at the first step of a collapse."""

    @property
    def metrics(self) -> dict[str, float | None]:
        """Under their documented names."""
        return {"health/reward_fall": self.reward_fall, "health/collapse": float(self.collapsed)}


class CollapseWatch:
    """Looks at one step after another. A collapse begins once; it ends when rewards are back and nothing climbs."""

    def __init__(self) -> None:
        self._rows: deque[Row] = deque(maxlen=WINDOW_STEPS + BEFORE_STEPS)
        self._step = 0
        self._best: float | None = None
        self._best_step = 0
        self._best_rewards: dict[str, float] = {}
        self._largest_spread = 0.0
        self._differences: tuple[float, int] = (0.0, 0)
        self._collapsed = False
        self._good_step = 0

    @classmethod
    def over(cls, rows: Iterable[Row]) -> CollapseWatch:
        """One that has seen these rows of metrics.jsonl."""
        watch = cls()
        for row in rows:
            step = row["step"]
            if isinstance(step, int) and step > 0:
                watch.look(step, row)
        return watch

    @property
    def good_step(self) -> int:
        """The last step whose weights are above suspicion: the one before that of the best rewards, which its weights
        earned. During a collapse, as it was when that began."""
        return self._good_step

    def look(self, step: int, row: Row) -> Health:
        """Judge a step by its metrics and all before it."""
        self._note(row)
        self._rows.append(row)
        self._step = step
        smoothed = _smoothed(self._last(), "reward/mean")
        fell = self._fall(smoothed) if smoothed is not None else None
        climbed = self._climbed()
        before, self._collapsed = self._collapsed, bool((fell and self._is_sharp(fell, smoothed)) or climbed)
        if not self._collapsed:
            self._good_step = max(self._best_step - 1, 0)
        begins = self._story(fell, climbed) if self._collapsed and not before else None
        return Health(reward_fall=fell, collapsed=self._collapsed, begins=begins)

    def _note(self, row: Row) -> None:
        """Add the change of the mean total since the step before to what tells its noise."""
        now, before = _number(row, "reward/mean"), _number(self._rows[-1], "reward/mean") if self._rows else None
        if now is not None and before is not None:
            total, count = self._differences
            self._differences = (total + (now - before) ** 2, count + 1)

    def _last(self) -> list[Row]:
        return list(self._rows)[-WINDOW_STEPS:]

    def _fall(self, smoothed: float) -> float:
        spread = _smoothed(self._last(), "reward/std")
        self._largest_spread = max(self._largest_spread, spread or 0.0)
        if self._best is None or smoothed >= self._best:
            self._best, self._best_step = smoothed, self._step
            self._best_rewards = _rewards(self._last())
        return self._best - smoothed

    def _is_sharp(self, fell: float, smoothed: float | None) -> bool:
        assert self._best is not None
        limit = fall_limit(
            best=self._best,
            now=smoothed or 0.0,
            spread=self._largest_spread,
            noise=step_noise(*self._differences),
        )
        return fell > (limit / 2 if self._collapsed else limit)

    def _climbed(self) -> dict[str, tuple[float, float]]:
        """(median before, median now) of everything that the run has of `CLIMBING`, when all of it climbs."""
        series = {name: [_number(row, name) for row in self._rows] for name in CLIMBING}
        known = {name: values for name, values in series.items() if any(value is not None for value in values)}
        climbing = {name: climbs(values, positive=name != "trainer/loss") for name, values in known.items()}
        if len(climbing) < 2 or "trainer/grad_norm" not in climbing:
            return {}
        found = {name: medians for name, medians in climbing.items() if medians is not None}
        return found if len(found) == len(climbing) else {}

    def _story(self, fell: float | None, climbed: Mapping[str, tuple[float, float]]) -> str:
        if climbed:
            listed = ", ".join(f"{name} from {before:.3g} to {now:.3g}" for name, (before, now) in climbed.items())
            return f"{listed}: medians of the last {WINDOW_STEPS} steps against those before"
        assert self._best is not None
        assert fell is not None
        now = _rewards(self._last())
        parts = [
            f"{name} from {best:.3f} to {now[name]:.3f}" for name, best in self._best_rewards.items() if name in now
        ]
        story = f"reward/mean fell from {self._best:.3f} (step {self._best_step}) to {self._best - fell:.3f}"
        details = f" ({', '.join(parts)})" if len(parts) > 1 else ""
        return f"{story}{details}: means of {WINDOW_STEPS} steps"


def collapse_warning(recipe: Recipe, step: int, story: str, kept: Path | None) -> str:
    """What a person is told when a collapse begins: what happened, what is kept, what to change."""
    rate, beta, norm = recipe.trainer.learning_rate, recipe.objective.beta, recipe.trainer.max_grad_norm
    lower = f"trainer.learning_rate ({rate:g})" + (f" and objective.beta ({beta:g})" if beta else "")
    then = "" if norm is not None and norm <= 0.5 else "; if that is not enough, set trainer.max_grad_norm to 0.5"
    again = f"Go on from {kept}, which is kept," if kept else "Begin again (no checkpoint from before is left)"
    return f"step {step}: a collapse: {story}. The run is not stopped. {again} with a lower {lower}{then}"


def fall_limit(*, best: float, now: float, spread: float, noise: float) -> float:
    """How far the smoothed mean total may fall below its best.

    Half the spread of the totals, or a quarter where less than 0.4 of the best is left; and in any case no less than
    5.5 times the noise of the difference of two windows.

    Args:
        best: the best smoothed mean total, and `now` the present one.
        spread: the largest smoothed standard deviation of the totals of a step.
        noise: standard deviation of a step's mean total around its trend.
    """
    most_is_gone = now < MOST_IS_GONE * best
    return max((SPREADS_WHEN_MOST_IS_GONE if most_is_gone else SPREADS) * spread, NOISES * noise * _TWO_WINDOWS)


_TWO_WINDOWS = math.sqrt(2 / WINDOW_STEPS)
"""The standard error of the difference of two windows' means, for steps with a standard deviation of 1."""


def step_noise(squared_differences: float, count: int) -> float:
    """The standard deviation of values around a slow trend, from the sum of squares of `count` successive differences:
    each has twice the variance (von Neumann 1941)."""
    return math.sqrt(squared_differences / count / 2) if count else 0.0


def climbs(values: Sequence[float | None], *, positive: bool) -> tuple[float, float] | None:
    """(median before, median of the last window) when the latter is above all that was before and, for values that are
    never negative, at least 3 times the median before; else None. None among the values: missing."""
    now = [value for value in values[-WINDOW_STEPS:] if value is not None]
    before = [value for value in values[:-WINDOW_STEPS] if value is not None]
    if len(now) <= WINDOW_STEPS // 2 or len(before) < LEAST_BEFORE_STEPS:
        return None
    high, usual = statistics.median_low(now), statistics.median(before)
    if high <= max(before) or (positive and high < CLIMB_FACTOR * usual):
        return None
    return usual, high


def _smoothed(rows: Sequence[Row], name: str) -> float | None:
    """The mean of a full window; None when more than half of it is missing."""
    values = [value for row in rows if (value := _number(row, name)) is not None]
    return statistics.fmean(values) if len(rows) == WINDOW_STEPS and len(values) > WINDOW_STEPS // 2 else None


def _rewards(rows: Sequence[Row]) -> dict[str, float]:
    """The smoothed mean of each reward, by its name."""
    names = [name for name in rows[-1] if name.startswith("rewards/") and name.endswith("/mean")]
    means = {name.split("/")[1]: _smoothed(rows, name) for name in names}
    return {name: value for name, value in means.items() if value is not None}


def _number(row: Row, name: str) -> float | None:
    value = row.get(name)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None

"""What a noisy curve does: where it starts and ends, whether it moved, where it peaked. Pure functions.

A curve is compared at its two ends, each the mean of a fifth of its points: a difference counts when it is three times
its own standard error (the two ends taken as independent samples) and as large as the caller finds worth a word.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Curve", "Move", "Peak", "lowest", "move", "peak", "smoothed"]

ENOUGH_POINTS = 20
"""With fewer, the ends of a curve say nothing."""
_END_SHARE = 0.2
_STANDARD_ERRORS = 3.0


@dataclass(frozen=True, slots=True)
class Curve:
    """Values of a metric over the steps at which it has one, all finite."""

    steps: tuple[int, ...]
    values: tuple[float, ...]

    @classmethod
    def of(cls, points: Iterable[tuple[int, float]]) -> Curve:
        """From (step, value) pairs, in order."""
        pairs = tuple(points)
        return cls(tuple(step for step, _ in pairs), tuple(value for _, value in pairs))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def enough(self) -> bool:
        """Whether it is long enough to be read."""
        return len(self) >= ENOUGH_POINTS

    @property
    def window(self) -> int:
        """Points of one end."""
        return max(round(len(self) * _END_SHARE), 1)

    def second_half(self) -> Curve:
        """Its later half."""
        half = len(self) // 2
        return Curve(self.steps[half:], self.values[half:])


@dataclass(frozen=True, slots=True)
class Move:
    """From the beginning of a curve to its end."""

    before: float
    after: float
    error: float
    """Standard error of the difference."""

    @property
    def change(self) -> float:
        """Positive: it rose."""
        return self.after - self.before

    def rose(self, least: float) -> bool:
        """Whether it rose by at least `least`, beyond its noise."""
        return self.change > 0 and self.change >= max(least, _STANDARD_ERRORS * self.error)

    def fell(self, least: float) -> bool:
        """Whether it fell by at least `least`, beyond its noise."""
        return self.change < 0 and -self.change >= max(least, _STANDARD_ERRORS * self.error)

    def flat(self, least: float) -> bool:
        """Whether neither."""
        return not self.rose(least) and not self.fell(least)


@dataclass(frozen=True, slots=True)
class Peak:
    """The extreme of a smoothed curve."""

    step: int
    value: float


def move(curve: Curve) -> Move:
    """Compare the ends of a curve, which must not be empty."""
    first, last = curve.values[: curve.window], curve.values[-curve.window :]
    error = math.sqrt((_variance(first) + _variance(last)) / curve.window)
    return Move(statistics.fmean(first), statistics.fmean(last), error)


def smoothed(curve: Curve) -> Curve:
    """A centred moving mean over a tenth of the points; narrower at the ends."""
    half = max(len(curve) // 20, 1)
    means = [statistics.fmean(curve.values[max(i - half, 0) : i + half + 1]) for i in range(len(curve))]
    return Curve(curve.steps, tuple(means))


def peak(curve: Curve) -> Peak:
    """The highest point of the smoothed curve, the first of equals."""
    means = smoothed(curve)
    value = max(means.values)
    return Peak(means.steps[means.values.index(value)], value)


def lowest(curve: Curve) -> Peak:
    """The lowest point of the smoothed curve, the first of equals."""
    means = smoothed(curve)
    value = min(means.values)
    return Peak(means.steps[means.values.index(value)], value)


def _variance(values: tuple[float, ...]) -> float:
    return statistics.variance(values) if len(values) > 1 else 0.0

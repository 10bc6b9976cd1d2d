"""Wall-clock seconds of the stages of a step, which are also what messages about waits call them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from grpo_core.ranks.ranks import ALONE, Ranks

__all__ = ["Clock"]


class Clock:
    """`with clock("rollout"): …` adds to that stage; `metrics()` gives `time/<stage>_s` and `time/step_s`."""

    def __init__(self, ranks: Ranks = ALONE) -> None:
        self._ranks = ranks
        self._started = time.perf_counter()
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            with self._ranks.stage(stage):
                yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started

    def metrics(self) -> dict[str, float]:
        """Seconds of each stage, and of the whole step so far."""
        stages = {f"time/{stage}_s": seconds for stage, seconds in self.seconds.items()}
        return {**stages, "time/step_s": time.perf_counter() - self._started}

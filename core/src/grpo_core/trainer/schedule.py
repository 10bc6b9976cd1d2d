"""The learning rate of an update, a pure function of its index: nothing to save, nothing to step."""

from __future__ import annotations

import math

from grpo_core.recipe.schema import TrainerSettings

__all__ = ["learning_rate", "warmup_length"]


def learning_rate(update: int, settings: TrainerSettings, total_updates: int) -> float:
    """The rate of update `update`, from 0, of `total_updates`.

    Over W warm-up updates it rises in equal steps, peak * 1/(W+1), 2/(W+1), …, so that no update is wasted on a rate
    of 0; update W has the peak. Then it stays, or goes down such that it would be 0 at update `total_updates`, the
    first that is not made.
    """
    warmup = warmup_length(settings, total_updates)
    if update < warmup:
        return settings.learning_rate * (update + 1) / (warmup + 1)
    progress = min(1.0, (update - warmup) / max(1, total_updates - warmup))
    match settings.schedule:
        case "constant":
            return settings.learning_rate
        case "linear":
            return settings.learning_rate * (1.0 - progress)
        case "cosine":
            return settings.learning_rate * 0.5 * (1.0 + math.cos(math.pi * progress))


def warmup_length(settings: TrainerSettings, total_updates: int) -> int:
    """How many updates the warm-up takes: `warmup_updates`, else the nearest whole number to the share."""
    if settings.warmup_updates is not None:
        return settings.warmup_updates
    return round(settings.warmup_share * total_updates)

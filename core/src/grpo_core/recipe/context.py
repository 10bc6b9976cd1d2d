"""What a rollout or trainer backend is told about the run."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.recipe.schema import ModelSettings, ObjectiveSettings, RolloutSettings, TrainerSettings
from grpo_core.types.context import BuildContext

__all__ = ["BackendContext"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendContext(BuildContext):
    """Given to the factory of a backend, `make(options, context)`."""

    model: ModelSettings
    """The policy; `path` is a folder or a hub id."""
    rollout: RolloutSettings
    """Sampling settings."""
    trainer: TrainerSettings
    """Settings of the update."""
    objective: ObjectiveSettings
    """The loss."""
    total_updates: int
    """Optimiser updates of the whole run; learning-rate schedules count these."""

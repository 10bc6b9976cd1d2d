"""What authors of rollout and trainer backends import beside `grpo_core.api`: settings and the context."""

from grpo_core.recipe.context import BackendContext
from grpo_core.recipe.schema import ModelSettings, ObjectiveSettings, Recipe, RolloutSettings, TrainerSettings

__all__ = ["BackendContext", "ModelSettings", "ObjectiveSettings", "Recipe", "RolloutSettings", "TrainerSettings"]

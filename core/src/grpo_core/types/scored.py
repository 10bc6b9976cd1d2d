"""Scores of a group's completions: three-valued per reward, and their total."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from grpo_core.types.rollout import RolloutGroup

__all__ = ["Failed", "Outcome", "ScoredGroup"]


@dataclass(frozen=True, slots=True)
class Failed:
    """A score that could not be computed: an exception, a dead worker, a deadline, NaN. Never a 0.0."""

    reason: str
    """What happened, one line."""


Outcome = float | None | Failed
"""A finite number; None when the reward does not apply to the sample; `Failed` when it could not be computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredGroup:
    """A rollout group with the outcome of every reward for every completion."""

    group: RolloutGroup
    """What was scored."""
    outcomes: Mapping[str, tuple[Outcome, ...]]
    """Reward name -> [G] outcomes."""
    totals: tuple[float | None, ...]
    """[G] Weighted totals. None: some reward failed on it or no reward applied, so it takes no part in the update."""
    records: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    """Name -> [G] values that rewards recorded beside their scores (`record("parsed", …)`), None where they did not."""

    @property
    def sample_id(self) -> str:
        """Of the sample whose prompt was answered."""
        return self.group.sample.id

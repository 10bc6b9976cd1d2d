"""What a run says about itself while it runs: read by observers, written to metrics.jsonl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from grpo_core.types.scored import ScoredGroup

__all__ = ["EvaluationReport", "RunOutcome", "RunStarted", "RunStatus", "StepReport"]

RunStatus = Literal["finished", "failed", "interrupted"]
"""How a run ended; `interrupted`: stopped by the user, and resumable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A run begins, or goes on after a resume."""

    run_dir: Path
    """Where everything is written."""
    plan: Mapping[str, object]
    """The resolved plan, as plain JSON values (plan.json)."""
    first_step: int
    """The step that comes next, from 1."""
    total_steps: int
    """The last step."""
    evaluation: EvaluationReport | None = None
    """The one before training, when the run begins and has held-out rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationReport:
    """Held-out rows answered by the policy as it stands."""

    step: int
    """Steps done when it was made; 0 before the first."""
    metrics: Mapping[str, float]
    """Documented names (`eval/accuracy`, …) -> values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """One step: a rollout, its scores and all its updates."""

    step: int
    """From 1."""
    total_steps: int
    """The last step."""
    metrics: Mapping[str, float | None]
    """Documented names -> values; None where nothing applied (a reward that no sample called for)."""
    groups: tuple[ScoredGroup, ...] = ()
    """Every completion of the step with its scores."""
    advantages: tuple[tuple[float, ...], ...] = ()
    """[groups][G] The advantage of each completion."""
    evaluation: EvaluationReport | None = None
    """The evaluation made after this step, if one was due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run ended."""

    status: RunStatus
    """In one word."""
    run_dir: Path
    """Where everything was written."""
    steps: int
    """Steps done."""
    saved_step: int = 0
    """The step of the newest checkpoint, from which a resume goes on; 0: there is none."""
    message: str = ""
    """The error, when it failed."""
    first_evaluation: EvaluationReport | None = None
    """Before training."""
    last_evaluation: EvaluationReport | None = None
    """The latest."""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    """Of the last step."""

"""What this distribution registers."""

from __future__ import annotations

from collections.abc import Iterable

from grpo_core.api import TrainerSpec, hookimpl


@hookimpl
def grpo_trainer_backends() -> Iterable[TrainerSpec]:
    """Nothing yet that a run can select."""
    return ()

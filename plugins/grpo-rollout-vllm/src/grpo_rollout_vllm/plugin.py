"""What this distribution registers."""

from __future__ import annotations

from collections.abc import Iterable

from grpo_core.api import RolloutSpec, hookimpl


@hookimpl
def grpo_rollout_backends() -> Iterable[RolloutSpec]:
    """Nothing yet that a run can select."""
    return ()

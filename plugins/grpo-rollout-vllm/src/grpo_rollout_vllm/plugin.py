"""What this distribution registers. Imports neither vLLM nor torch."""

from __future__ import annotations

from collections.abc import Iterable

from grpo_core.api import RolloutSpec, hookimpl


@hookimpl
def grpo_rollout_backends() -> Iterable[RolloutSpec]:
    """vLLM. A run that asks servers needs no vLLM of its own, so nothing is required here; what needs one says so."""
    yield RolloutSpec(
        name="vllm",
        summary="Completions from vLLM servers (`grpoctl rollout`)",
        target="grpo_rollout_vllm.backend:make",
        options="grpo_rollout_vllm.options:VllmRolloutOptions",
        capabilities=frozenset({"overlaps", "weights:stream"}),
        serve="grpo_rollout_vllm.serve:serve",
    )

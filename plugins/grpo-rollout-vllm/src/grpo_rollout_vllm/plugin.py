"""What this distribution registers. Imports neither vLLM nor torch."""

from __future__ import annotations

from collections.abc import Iterable

from grpo_core.api import RecipeSpec, RolloutSpec, hookimpl


@hookimpl
def grpo_rollout_backends() -> Iterable[RolloutSpec]:
    """vLLM. A run that asks servers needs no vLLM of its own, so nothing is required here; what needs one says so."""
    yield RolloutSpec(
        name="vllm",
        summary="Completions from vLLM servers (`grpoctl rollout`)",
        target="grpo_rollout_vllm.backend:make",
        options="grpo_rollout_vllm.options:VllmRolloutOptions",
        capabilities=frozenset({"images", "overlaps", "weights:stream"}),
        serve="grpo_rollout_vllm.serve:serve",
    )


@hookimpl
def grpo_recipes() -> Iterable[RecipeSpec]:
    """Countdown with both engines."""
    yield RecipeSpec(
        name="countdown",
        summary="Countdown with Qwen2.5-3B-Instruct on three GPUs: vLLM and ZeRO-3",
        package="grpo_rollout_vllm",
        path="recipes/countdown.yaml",
    )
    yield RecipeSpec(
        name="countdown-engines-smoke",
        summary="Both engines on a CPU: a vLLM server, two ZeRO-3 processes, 20 steps",
        package="grpo_rollout_vllm",
        path="recipes/countdown-engines-smoke.yaml",
    )

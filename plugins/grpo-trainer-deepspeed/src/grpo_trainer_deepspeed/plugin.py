"""What this distribution registers."""

from __future__ import annotations

from collections.abc import Iterable

from grpo_core.api import TrainerSpec, hookimpl


@hookimpl
def grpo_trainer_backends() -> Iterable[TrainerSpec]:
    """Updates with DeepSpeed."""
    yield TrainerSpec(
        name="deepspeed",
        summary="DeepSpeed ZeRO 0 to 3: weights, gradients and AdamW spread over GPUs, or kept in main memory",
        target="grpo_trainer_deepspeed.backend:make",
        options="grpo_trainer_deepspeed.options:DeepSpeedOptions",
        requires=("deepspeed>=0.19.8",),
        capabilities=frozenset({"freeze", "images", "lora", "weights:shared", "weights:stream"}),
    )

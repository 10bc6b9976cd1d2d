"""Requests and backends for the tests of this package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from grpo_core.backends import BackendContext, ModelSettings, ObjectiveSettings, RolloutSettings, TrainerSettings
from grpo_core.rollout.backend import TransformersRollout, make
from grpo_core.rollout.options import TransformersRolloutOptions
from grpo_core.types import Message, RolloutRequest, Sample, SamplingParams

PROMPT = (72, 101, 108, 108, 111)


def request(prompt_ids: tuple[int, ...] = PROMPT, n: int = 2, seed: int = 1, **params: Any) -> RolloutRequest:
    """A request for a sample that is called after its seed."""
    return RolloutRequest(
        sample=Sample(messages=(Message(role="user", content="Hello"),), id=f"train-{seed}"),
        prompt_text="Hello",
        prompt_ids=prompt_ids,
        n=n,
        params=SamplingParams(**{"max_tokens": 8, **params}),
        seed=seed,
    )


def backend(folder: Path, **options: Any) -> TransformersRollout:
    """The backend for a model folder, without weights."""
    context = BackendContext(
        model=ModelSettings(path=str(folder)),
        rollout=RolloutSettings(),
        trainer=TrainerSettings(),
        objective=ObjectiveSettings(),
        total_updates=1,
    )
    return make(TransformersRolloutOptions(**{"device": "cpu", **options}), context)

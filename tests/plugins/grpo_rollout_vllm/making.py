"""Backends, requests and weights for the tests of this plugin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch

from grpo_core.backends import BackendContext, ModelSettings, ObjectiveSettings, RolloutSettings, TrainerSettings
from grpo_core.recipe.schema import LoraSettings
from grpo_core.types import Message, RolloutRequest, Sample, SamplingParams
from grpo_rollout_vllm.options import VllmRolloutOptions
from grpo_rollout_vllm.rollout import ServerRollout

PROMPT = (72, 101, 108, 108, 111)
QUICK: dict[str, Any] = {"wait_limit_s": 60.0, "silence_limit_s": 30.0, "look_interval_s": 0.02}


def request(number: int = 1, *, n: int = 2, prompt_ids: tuple[int, ...] = PROMPT, **params: Any) -> RolloutRequest:
    """A request for the sample `train-NUMBER`, whose seed is its number."""
    return RolloutRequest(
        sample=Sample(messages=(Message(role="user", content="Hello"),), id=f"train-{number}"),
        prompt_text="Hello",
        prompt_ids=prompt_ids,
        n=n,
        params=SamplingParams(**{"max_tokens": 4, **params}),
        seed=number,
    )


def context(
    model: Path, run_dir: Path, *, lora: bool = False, max_staleness: Literal[0, 1] = 0, **more: Any
) -> BackendContext:
    """What a backend is told of a run."""
    return BackendContext(
        run_dir=run_dir,
        model=ModelSettings(path=str(model)),
        rollout=RolloutSettings(max_staleness=max_staleness),
        trainer=TrainerSettings(lora=LoraSettings(rank=4) if lora else None),
        objective=ObjectiveSettings(),
        total_updates=1,
        **more,
    )


@contextmanager
def rollout(
    model: Path, run_dir: Path, *urls: str, rank: int = 0, trains_adapter: bool = False, **options: Any
) -> Iterator[ServerRollout]:
    """The backend, closed at the end; its weights lie in the run's folder."""
    settings = {"weights_folder": str(run_dir / "weights"), **QUICK, **options}
    told = context(model, run_dir, lora=trains_adapter, rank=rank, world_size=2)
    backend = ServerRollout(VllmRolloutOptions(urls=urls, **settings), told)
    try:
        yield backend
    finally:
        backend.close()


def weights(value: float = 1.0) -> list[tuple[str, torch.Tensor]]:
    """A small stream; another value, another fingerprint."""
    return [("model.a", torch.full((3, 5), value)), ("model.b", torch.arange(7.0) * value)]

"""What the loop asks of a rollout backend: requests, their sampling parameters and random streams."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from grpo_core.data.prompts import Prompt
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.recipe.schema import RolloutSettings
from grpo_core.types import RolloutRequest, SamplingParams

__all__ = ["make_request", "sampling_params", "step_requests", "stream_seed"]


def stream_seed(*parts: object) -> int:
    """A 63-bit seed that is a function of `parts` alone: the same on every machine, rank and resume."""
    text = "\x1f".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1


def sampling_params(rollout: RolloutSettings, *, greedy: bool = False) -> SamplingParams:
    """How to draw completions; greedy decoding ignores everything but length and stop texts."""
    if greedy:
        return SamplingParams(max_tokens=rollout.max_completion_tokens, temperature=0.0, stop=rollout.stop)
    return SamplingParams(
        max_tokens=rollout.max_completion_tokens,
        temperature=rollout.temperature,
        top_p=rollout.top_p,
        top_k=rollout.top_k,
        min_p=rollout.min_p,
        repetition_penalty=rollout.repetition_penalty,
        stop=rollout.stop,
    )


def make_request(prompt: Prompt, *, n: int, params: SamplingParams, seed: int) -> RolloutRequest:
    """Ask for `n` completions of a rendered prompt."""
    return RolloutRequest(
        sample=prompt.sample,
        prompt_text=prompt.text,
        prompt_ids=prompt.token_ids,
        bare_prompt_ids=prompt.bare_ids,
        n=n,
        params=params,
        seed=seed,
    )


def step_requests(plan: LaunchPlan, prompts: Sequence[Prompt], *, seed: int, step: int) -> list[RolloutRequest]:
    """The requests of a step. A prompt that occurs twice in it draws from two random streams."""
    params = sampling_params(plan.recipe.rollout)
    return [
        make_request(
            prompt,
            n=plan.batch.completions_per_prompt,
            params=params,
            seed=stream_seed(seed, "train", step, place, prompt.sample.id),
        )
        for place, prompt in enumerate(prompts)
    ]

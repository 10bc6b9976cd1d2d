"""The loop's side of generation: requests out, complete groups in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from grpo_core.data.prompts import Prompt
from grpo_core.errors import RolloutError
from grpo_core.protocols import RolloutBackend
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.recipe.schema import RolloutSettings
from grpo_core.types import RolloutGroup, RolloutRequest, SamplingParams

__all__ = ["generate", "make_request", "sampling_params", "step_requests", "stream_seed"]


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


def generate(backend: RolloutBackend, requests: Sequence[RolloutRequest]) -> Iterator[RolloutGroup]:
    """Yield the backend's groups as they come, each checked against what was asked; every request is answered."""
    waiting = {id(request): request for request in requests}
    for group in backend.generate(requests):
        if waiting.pop(id(group.request), None) is None:
            raise RolloutError(f"the rollout backend answered for sample {group.sample.id!r}, which was not asked for")
        _check_group(group)
        yield group
    if waiting:
        missing = ", ".join(repr(request.sample.id) for request in waiting.values())
        raise RolloutError(f"the rollout backend ended without an answer for {len(waiting)} prompts: {missing}")


def _check_group(group: RolloutGroup) -> None:
    where = f"sample {group.sample.id!r}"
    if len(group.completions) != group.request.n:
        raise RolloutError(f"{where}: asked for {group.request.n} completions, got {len(group.completions)}")
    for index, completion in enumerate(group.completions):
        tokens, logprobs = len(completion.token_ids), len(completion.sampling_logprobs)
        if tokens == 0:
            raise RolloutError(f"{where}: completion {index} has no token, not even an end token")
        if tokens != logprobs:
            raise RolloutError(f"{where}: completion {index} has {tokens} tokens but {logprobs} log-probabilities")

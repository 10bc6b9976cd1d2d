"""What a request must hold before anything is computed for it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from grpo_core.errors import RolloutError
from grpo_core.types import RolloutRequest, SamplingParams
from grpo_core.types.sample import image_count

__all__ = ["check_requests"]


def check_requests(
    requests: Sequence[RolloutRequest], *, vocab_size: int, context_tokens: int | None, reads_images: bool = False
) -> None:
    """Raise `RolloutError` for the first request that cannot be answered; it names the sample. `reads_images` says
    whether the model and the engine do."""
    for request in requests:
        faults = [*_image_faults(request, reads_images), *_prompt_faults(request, vocab_size, context_tokens)]
        faults += _params_faults(request)
        if faults:
            message, hint = faults[0]
            raise RolloutError(f"sample {request.sample.id!r}: {message}", hint=hint)


Fault = tuple[str, str]
"""What is wrong, and what to do."""


def _image_faults(request: RolloutRequest, reads_images: bool) -> Iterator[Fault]:
    images = len(request.sample.images)
    if images and not reads_images:
        yield (
            f"its prompt has {image_count(images)}, and text only is read here",
            "choose a vision-language model, and a rollout backend with the capability `images`",
        )
    elif images and not request.bare_prompt_ids:
        yield (
            f"its prompt has {image_count(images)}, and bare_prompt_ids has no placeholders for them",
            "fill them in where the request is made: grpo_core.data.prompts does",
        )


def _prompt_faults(request: RolloutRequest, vocab_size: int, context_tokens: int | None) -> Iterator[Fault]:
    prompt, limit = request.prompt_ids, request.params.max_tokens
    if not prompt:
        yield "its prompt has no tokens", "look at it with `grpoctl datasets preview`; a BOS token is enough"
    outside = [token for token in prompt if not 0 <= token < vocab_size]
    if outside:
        yield (
            f"its prompt has the token {outside[0]}, and the model knows 0 to {vocab_size - 1}",
            "the tokenizer is not this model's: see model.tokenizer",
        )
    if context_tokens is not None and len(prompt) + limit > context_tokens:
        yield (
            f"a prompt of {len(prompt)} tokens and a completion of up to {limit} do not fit into the model's context "
            f"of {context_tokens}",
            "lower rollout.max_completion_tokens, or dataset.max_prompt_tokens so that long prompts are left out",
        )


def _params_faults(request: RolloutRequest) -> Iterator[Fault]:
    params = request.params
    checks: list[tuple[bool, str, object, str]] = [
        (request.n >= 1, "n", request.n, "at least 1"),
        (params.max_tokens >= 1, "max_tokens", params.max_tokens, "at least 1"),
        (_is_from_zero(params.temperature), "temperature", params.temperature, "a finite number from 0"),
        (0 < params.top_p <= 1, "top_p", params.top_p, "above 0 and at most 1"),
        (params.top_k >= 0, "top_k", params.top_k, "0 (off) or more"),
        (0 <= params.min_p < 1, "min_p", params.min_p, "from 0 (off) to below 1"),
        (_is_positive(params), "repetition_penalty", params.repetition_penalty, "a finite number above 0"),
        (all(params.stop), "stop", params.stop, "texts of at least one character"),
    ]
    for holds, name, value, allowed in checks:
        if not holds:
            yield f"{name} is {value!r}", f"{name} must be {allowed}"


def _is_from_zero(value: float) -> bool:
    return math.isfinite(value) and value >= 0


def _is_positive(params: SamplingParams) -> bool:
    return math.isfinite(params.repetition_penalty) and params.repetition_penalty > 0

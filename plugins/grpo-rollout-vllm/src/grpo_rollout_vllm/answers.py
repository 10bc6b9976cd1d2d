"""Between core's requests and vLLM's: sampling parameters out, completions in. Token ids only; text is decoded here.

Place in the flow: RolloutRequest → **answers** → server → **answers** → RolloutGroup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from grpo_core.api import Completion, FinishReason, RolloutError, RolloutGroup, RolloutRequest
from grpo_core.rollout.stop import CompletionText
from grpo_rollout_vllm.images import PromptImages, require_same_prompt

__all__ = ["Interrupted", "OtherWeights", "completion_of", "group_of", "payload_of", "require_room", "sampling_of"]

_LOWEST = -9000.0
"""vLLM writes -9999 where a log-probability is not finite."""
_SEED_BITS = 2**62


class Interrupted(Exception):
    """The server gave a completion up; the prompt can be asked again."""


class OtherWeights(Exception):
    """A completion was made by other weights than asked for; the text is the server's label of them."""


def require_room(requests: Sequence[RolloutRequest], limit: int, whose: str, *, hint: str) -> None:
    """Raise `RolloutError` where a prompt and its completion may have more than `limit` tokens: vLLM would shorten the
    completion without a word."""
    longest = max(requests, key=lambda each: len(each.prompt_ids) + each.params.max_tokens, default=None)
    if longest is None or len(longest.prompt_ids) + longest.params.max_tokens <= limit:
        return
    raise RolloutError(
        f"sample {longest.sample.id!r}: a prompt of {len(longest.prompt_ids)} tokens and a completion of up to "
        f"{longest.params.max_tokens} do not fit into the {limit} tokens {whose}",
        hint=hint,
    )


def sampling_of(request: RolloutRequest, end_ids: Sequence[int], images: PromptImages) -> dict[str, Any]:
    """vLLM's sampling parameters. Completion i draws from the seed + i, so a part of a group draws what the whole one
    would have drawn there."""
    params = request.params
    return {
        "n": request.n,
        "max_tokens": params.max_tokens,
        "temperature": 0.0 if params.greedy else params.temperature,  # 0 is vLLM's word for it
        "top_p": params.top_p,
        "top_k": params.top_k,
        "min_p": params.min_p,
        "repetition_penalty": params.repetition_penalty,
        "seed": (request.seed + request.first_member) % _SEED_BITS,
        "logprobs": 0,
        # The trainer's end tokens, whatever the server's files say.
        "ignore_eos": True,
        "stop_token_ids": list(end_ids),
        "stop": list(params.stop),
        "include_stop_str_in_output": True,
        "detokenize": bool(params.stop),
        **images.sampling(),
    }


def payload_of(
    request: RolloutRequest, end_ids: Sequence[int], images: PromptImages, adapter: str | None = None
) -> dict[str, Any]:
    """The body of `/inference/v1/generate`; `adapter`: the server's name of the one to use."""
    body = {**images.body(request), "sampling_params": sampling_of(request, end_ids, images)}
    return body if adapter is None else {**body, "model": adapter}


def group_of(
    request: RolloutRequest, answer: Mapping[str, Any], *, label: str, version: int, text: CompletionText
) -> RolloutGroup:
    """The group that an answer holds; raises `OtherWeights` unless the weights `label` made every token, and
    `RolloutError` where the prompt became another one than the run's."""
    require_same_prompt(request, answer.get("prompt_token_ids"), "the vLLM server")
    choices = sorted(answer["choices"], key=lambda choice: int(choice["index"]))
    return RolloutGroup(
        request=request,
        completions=tuple(_completion(request, choice, label, version, text) for choice in choices),
        logprob_space="raw",
    )


def _completion(
    request: RolloutRequest, choice: Mapping[str, Any], label: str, version: int, text: CompletionText
) -> Completion:
    if choice["finish_reason"] not in ("stop", "length"):
        raise Interrupted(f"it ended a completion with {choice['finish_reason']!r}")
    others = [span["version"] for span in choice["weight_versions"] or () if span["version"] != label]
    if others or not choice["weight_versions"]:
        raise OtherWeights(others[0] if others else "none")
    return completion_of(
        request,
        tokens=tuple(choice["token_ids"]),
        logprobs=tuple(float(each["logprob"]) for each in choice["logprobs"]["content"]),
        finish_reason=choice["finish_reason"],
        version=version,
        text=text,
    )


def completion_of(
    request: RolloutRequest,
    *,
    tokens: tuple[int, ...],
    logprobs: tuple[float, ...],
    finish_reason: str,
    version: int,
    text: CompletionText,
) -> Completion:
    """A completion in core's words; raises `RolloutError` when a token has no probability."""
    if any(not logprob > _LOWEST for logprob in logprobs):
        raise RolloutError(
            f"sample {request.sample.id!r}: vLLM gives a token that it drew the probability 0, or none",
            hint="the weights may hold NaN: look at the metrics of the last steps, and go back to a checkpoint",
        )
    return Completion(
        text=text(tokens),
        token_ids=tokens,
        sampling_logprobs=logprobs,
        finish_reason=FinishReason.STOP if finish_reason == "stop" else FinishReason.LENGTH,
        policy_version=version,
    )

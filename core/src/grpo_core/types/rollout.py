"""Generation: what is asked of a rollout backend, and what comes back. Token ids in, token ids out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from grpo_core.types.sample import Sample

__all__ = ["Completion", "FinishReason", "LogprobSpace", "RolloutGroup", "RolloutRequest", "SamplingParams"]

LogprobSpace = Literal["raw", "tempered", "processed"]
"""What a sampling log-probability is the logarithm of, as a softmax over the whole vocabulary:

* `raw`: of the logits as the model gives them;
* `tempered`: of logits / temperature, the policy that is trained, before top-p, top-k, min-p and penalties;
* `processed`: of the distribution actually drawn from. Equals `tempered` when no filter and no penalty is set;
  with one it cannot be computed from a token alone, and a run that needs the importance correction refuses it.
"""


class FinishReason(StrEnum):
    """Why a completion ended."""

    STOP = "stop"
    """An end token or a stop string."""
    LENGTH = "length"
    """The token limit: the completion is truncated."""
    ABORT = "abort"
    """The engine gave it up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How completions are drawn.

    Example: `SamplingParams(max_tokens=512, temperature=1.0, top_p=0.95)`
    """

    max_tokens: int
    """The most tokens of one completion, the end token included."""
    temperature: float = 1.0
    """Logits are divided by it. 0 where the most likely token is taken each time, and nothing is to be divided: see
    `greedy`."""
    top_p: float = 1.0
    """Draw from the smallest set of tokens whose probabilities sum to at least this; 1 means off."""
    top_k: int = 0
    """Draw from the k most likely tokens; 0 means off."""
    min_p: float = 0.0
    """Draw from tokens at least this fraction as likely as the likeliest one; 0 means off."""
    repetition_penalty: float = 1.0
    """Divides positive and multiplies negative logits of tokens already in prompt or completion; 1 means off."""
    stop: tuple[str, ...] = ()
    """Texts that end a completion; the one met stays in the text."""

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is taken each time, as evaluations ask; `temperature` is 0 then, and
        log-probabilities are of softmax(logits)."""
        return self.temperature == 0.0

    @property
    def filtered(self) -> bool:
        """Whether completions are drawn from something else than softmax(logits / temperature)."""
        return self.top_p < 1.0 or self.top_k > 0 or self.min_p > 0.0 or self.repetition_penalty != 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutRequest:
    """Ask for `n` completions of one prompt."""

    sample: Sample
    """Where the prompt comes from."""
    prompt_text: str
    """The rendered prompt, chat template applied."""
    prompt_ids: tuple[int, ...]
    """[P] The tokens of the rendered prompt; these, not the text, are what the model sees. Each image of the sample is
    there with all the tokens that the model's processor makes of it."""
    n: int
    """How many completions to draw: G, the group's size, or a part of it."""
    params: SamplingParams
    """How to draw them."""
    seed: int
    """Completion i of this request draws from its own random stream, a function of (seed, first_member + i) alone."""
    first_member: int = 0
    """Where a group is split over several requests: how many of its completions the others before this one draw."""
    bare_prompt_ids: tuple[int, ...] = ()
    """The prompt with one placeholder token an image, for engines that put an image's tokens there themselves; what
    they then have must be `prompt_ids`. Empty: the sample has no images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One answer of the policy.

    Example: `Completion(text="4", token_ids=(17, 2), sampling_logprobs=(-0.1, -0.02), finish_reason=FinishReason.STOP)`
    """

    text: str
    """The decoded completion, without the end token."""
    token_ids: tuple[int, ...]
    """[T] What the policy produced, the end token included when there is one; never re-tokenised from text."""
    sampling_logprobs: tuple[float, ...]
    """[T] Natural logarithm of each token's probability when it was drawn; the group says in which space."""
    finish_reason: FinishReason
    """Why it ended; `length` is what "truncated" means everywhere."""
    policy_version: int = 0
    """How many updates the weights that made it had seen."""

    @property
    def truncated(self) -> bool:
        """Whether the token limit cut it off."""
        return self.finish_reason is FinishReason.LENGTH


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutGroup:
    """All completions of one prompt."""

    request: RolloutRequest
    """What was asked."""
    completions: tuple[Completion, ...]
    """[G] Exactly `request.n` completions, in the order of their random streams."""
    logprob_space: LogprobSpace = "tempered"
    """What `sampling_logprobs` are logarithms of."""

    @property
    def sample(self) -> Sample:
        """The sample whose prompt was answered."""
        return self.request.sample

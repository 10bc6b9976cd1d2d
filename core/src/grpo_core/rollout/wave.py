"""Requests decoded together, token by token, until each has all its completions.

One wave has one set of sampling parameters. It knows nothing of weights and devices: a `Decoder` gives it logits.

Shapes: B sequences under way, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from grpo_core.errors import RolloutError
from grpo_core.rollout.forward import Decoder
from grpo_core.rollout.random_streams import stream_keys, uniforms
from grpo_core.rollout.sampling import draw
from grpo_core.rollout.stop import CompletionText, StopRule
from grpo_core.types import Completion, FinishReason, RolloutGroup, RolloutRequest

__all__ = ["Wave", "plan_waves"]

DROP_SHARE = 1 / 16
"""Finished sequences leave the batch once they are this share of it: leaving costs less than decoding them along."""


def plan_waves(requests: Sequence[RolloutRequest], max_sequences: int) -> list[list[RolloutRequest]]:
    """Cut requests into waves of equal parameters and like prompt length; groups stay whole."""
    waves: list[list[RolloutRequest]] = []
    sequences = 0
    by_params = {params: i for i, params in enumerate(dict.fromkeys(request.params for request in requests))}
    for request in sorted(requests, key=lambda request: (by_params[request.params], len(request.prompt_ids))):
        if not waves or request.params != waves[-1][0].params or sequences + request.n > max_sequences:
            waves.append([])
            sequences = 0
        waves[-1].append(request)
        sequences += request.n
    return waves


@dataclass(slots=True)
class _Member:
    """A completion under way."""

    request: RolloutRequest
    index: int
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish_reason: FinishReason | None = None


class Wave:
    """A wave under way."""

    def __init__(
        self, requests: Sequence[RolloutRequest], decoder: Decoder, text: CompletionText, policy_version: int
    ) -> None:
        self._decoder = decoder
        self._text = text
        self._policy_version = policy_version
        self._params = requests[0].params
        self._ends = StopRule(self._params, text)
        self._groups = [[_Member(request, index) for index in range(request.n)] for request in requests]
        self._rows = [member for group in self._groups for member in group]
        self._keys_B = stream_keys((member.request.seed, member.index) for member in self._rows)
        self._seen_BV: Tensor | None = None
        self._tokens_B: Tensor | None = None
        self._position = 0

    @property
    def done(self) -> bool:
        """Whether every group was given out."""
        return not self._groups

    def advance(self) -> list[RolloutGroup]:
        """Decode until at least one more group is complete, and give out those that are."""
        while not self.done:
            self._draw(self._next_logits())
            complete = [group for group in self._groups if all(member.finish_reason for member in group)]
            if complete:
                self._groups = [group for group in self._groups if not all(member.finish_reason for member in group)]
                return [self._finished(group) for group in complete]
        return []

    def _next_logits(self) -> Tensor:
        if self._tokens_B is not None:
            return self._decoder.step(self._tokens_B)
        requests = [group[0].request for group in self._groups]
        logits_BV = self._decoder.prefill([r.prompt_ids for r in requests], [r.n for r in requests])
        if self._params.repetition_penalty != 1.0:
            self._seen_BV = torch.zeros_like(logits_BV, dtype=torch.bool)
            for row, member in enumerate(self._rows):
                self._seen_BV[row, list(member.request.prompt_ids)] = True
        return logits_BV

    def _draw(self, logits_BV: Tensor) -> None:
        numbers_B = torch.from_numpy(uniforms(self._keys_B, self._position)).to(logits_BV.device)
        drawn = draw(logits_BV, self._params, numbers_B, self._seen_BV)
        self._position += 1
        self._tokens_B = drawn.tokens_B
        if self._seen_BV is not None:
            self._seen_BV.scatter_(1, drawn.tokens_B[:, None], True)
        finished = 0
        for member, token, logprob in zip(self._rows, drawn.tokens_B.tolist(), drawn.logprobs_B.tolist(), strict=True):
            if member.finish_reason is None:
                self._append(member, token, logprob)
            finished += member.finish_reason is not None
        if finished >= max(1, DROP_SHARE * len(self._rows)):
            self._drop_finished()

    def _append(self, member: _Member, token: int, logprob: float) -> None:
        if not math.isfinite(logprob):
            raise RolloutError(
                f"sample {member.request.sample.id!r}: the model's logits are not finite at token "
                f"{len(member.token_ids)} of completion {member.index}",
                hint="the weights have become NaN or infinite: lower the learning rate, or go back to a checkpoint",
            )
        member.token_ids.append(token)
        member.logprobs.append(logprob)
        member.finish_reason = self._ends(member.token_ids)

    def _drop_finished(self) -> None:
        """Put rows from the end into the places of finished ones, so that few rows move."""
        kept = [row for row, member in enumerate(self._rows) if member.finish_reason is None]
        if not kept:
            self._rows = []
            return
        from_end = [row for row in kept if row >= len(kept)]
        stay = set(kept)
        rows = [row if row in stay else from_end.pop() for row in range(len(kept))]
        self._decoder.keep(rows)
        self._rows = [self._rows[row] for row in rows]
        self._keys_B = self._keys_B[np.array(rows)]
        if self._tokens_B is not None:
            self._tokens_B = self._tokens_B[rows]
        if self._seen_BV is not None:
            self._seen_BV = self._seen_BV[rows]

    def _finished(self, group: Sequence[_Member]) -> RolloutGroup:
        return RolloutGroup(
            request=group[0].request,
            completions=tuple(
                Completion(
                    text=self._text(member.token_ids),
                    token_ids=tuple(member.token_ids),
                    sampling_logprobs=tuple(member.logprobs),
                    finish_reason=member.finish_reason or FinishReason.ABORT,
                    policy_version=self._policy_version,
                )
                for member in group
            ),
            logprob_space="tempered",
        )

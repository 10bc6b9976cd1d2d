"""Requests decoded together, token by token, until each has all its completions.

One wave has one set of sampling parameters. It knows nothing of weights and devices: a `Decoder` gives it logits.

Shapes: B sequences under way, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from grpo_core.errors import RolloutError
from grpo_core.rollout.forward import Decoder
from grpo_core.rollout.prompts import Prompts, text_prompts
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

    group: int
    """Index in the wave."""
    index: int
    """Among the completions of the group."""
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish_reason: FinishReason | None = None


class Wave:
    """A wave under way."""

    def __init__(
        self,
        requests: Sequence[RolloutRequest],
        decoder: Decoder,
        text: CompletionText,
        policy_version: int,
        *,
        prompts: Prompts | None = None,
        never: Collection[int] = (),
    ) -> None:
        """`prompts` are those of the requests as the model reads them; None: they are texts. `never` are tokens that no
        completion may have."""
        self._decoder = decoder
        self._text = text
        self._policy_version = policy_version
        self._params = requests[0].params
        self._ends = StopRule(self._params, text)
        self._requests = requests
        self._prompts = text_prompts([request.prompt_ids for request in requests]) if prompts is None else prompts
        self._never = sorted(never)
        self._never_V: Tensor | None = None
        self._groups = [[_Member(group, index) for index in range(r.n)] for group, r in enumerate(requests)]
        self._open = [len(group) for group in self._groups]
        self._rows = [member for group in self._groups for member in group]
        streams = ((requests[row.group].seed, requests[row.group].first_member + row.index) for row in self._rows)
        self._keys_B = stream_keys(streams)
        self._seen_BV: Tensor | None = None
        self._tokens_B: Tensor | None = None
        self._position = 0
        self._finished_rows = 0

    @property
    def done(self) -> bool:
        """Whether every group was given out."""
        return not any(self._open)

    def advance(self) -> list[RolloutGroup]:
        """Decode until at least one more group is complete, and give out those that are."""
        complete: list[int] = []
        while not complete:
            complete = self._draw(self._next_logits())
        return [self._finished(group) for group in complete]

    def _next_logits(self) -> Tensor:
        if self._tokens_B is not None:
            return self._decoder.step(self._tokens_B)
        logits_BV = self._decoder.prefill(self._prompts, [request.n for request in self._requests])
        if self._never:
            self._never_V = torch.zeros_like(logits_BV[0], dtype=torch.bool)
            self._never_V[self._never] = True
        if self._params.repetition_penalty != 1.0:
            self._seen_BV = torch.zeros_like(logits_BV, dtype=torch.bool)
            for row, member in enumerate(self._rows):
                self._seen_BV[row, list(self._requests[member.group].prompt_ids)] = True
        return logits_BV

    def _draw(self, logits_BV: Tensor) -> list[int]:
        """Give every row its next token; the groups that are complete with it."""
        numbers_B = torch.from_numpy(uniforms(self._keys_B, self._position)).to(logits_BV.device)
        drawn = draw(logits_BV, self._params, numbers_B, self._seen_BV, self._never_V)
        self._position += 1
        self._tokens_B = drawn.tokens_B
        if self._seen_BV is not None:
            self._seen_BV.scatter_(1, drawn.tokens_B[:, None], True)
        complete = []
        rows = zip(self._rows, drawn.tokens_B.tolist(), drawn.logprobs_B.tolist(), strict=True)
        for member, token, logprob in rows:
            if member.finish_reason is None and self._append(member, token, logprob):
                self._open[member.group] -= 1
                self._finished_rows += 1
                if not self._open[member.group]:
                    complete.append(member.group)
        if self._finished_rows >= max(1, DROP_SHARE * len(self._rows)):
            self._drop_finished()
        return complete

    def _append(self, member: _Member, token: int, logprob: float) -> bool:
        """Whether the completion ends with this token."""
        if not math.isfinite(logprob):
            raise RolloutError(
                f"sample {self._requests[member.group].sample.id!r}: the model's logits are not finite at token "
                f"{len(member.token_ids)} of completion {member.index}",
                hint="the weights have become NaN or infinite: lower the learning rate, or go back to a checkpoint",
            )
        member.token_ids.append(token)
        member.logprobs.append(logprob)
        member.finish_reason = self._ends(member.token_ids)
        return member.finish_reason is not None

    def _drop_finished(self) -> None:
        """Put rows from the end into the places of finished ones, so that few rows move."""
        self._finished_rows = 0
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

    def _finished(self, group: int) -> RolloutGroup:
        return RolloutGroup(
            request=self._requests[group],
            completions=tuple(
                Completion(
                    text=self._text(member.token_ids),
                    token_ids=tuple(member.token_ids),
                    sampling_logprobs=tuple(member.logprobs),
                    finish_reason=member.finish_reason or FinishReason.ABORT,
                    policy_version=self._policy_version,
                )
                for member in self._groups[group]
            ),
            logprob_space="tempered",
        )

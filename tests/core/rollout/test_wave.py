from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from grpo_core.errors import RolloutError
from grpo_core.rollout.prompts import Prompts
from grpo_core.rollout.stop import CompletionText
from grpo_core.rollout.wave import Wave, plan_waves
from grpo_core.types import FinishReason, RolloutGroup, RolloutRequest
from tests.core.rollout.make import request
from tests.tiny_models import END_ID, make_tokenizer

VOCAB = 272
TOKENIZER = make_tokenizer()
TEXT = CompletionText(TOKENIZER, {END_ID})


def tokens(text: str) -> list[int]:
    """One a character; `$` is the end token."""
    return [END_ID if character == "$" else TOKENIZER(character)["input_ids"][0] for character in text]


(DOT,) = tokens(".")


class ScriptedDecoder:
    """Makes row r of the wave say `script[r]`, whatever rows leave; then dots for ever."""

    def __init__(self, *script: str) -> None:
        self.script = [tokens(line) for line in script]
        self.rows = list(range(len(script)))
        self.said = [0] * len(script)
        self.batches: list[int] = []
        self.bad_row: int | None = None

    def prefill(self, prompts: Prompts, repeats: Sequence[int]) -> Tensor:
        assert sum(repeats) == len(self.rows)
        return self._logits()

    def step(self, tokens_B: Tensor) -> Tensor:
        assert len(tokens_B) == len(self.rows)
        for row, token in zip(self.rows, tokens_B.tolist(), strict=True):
            assert token == self._next(row)
            self.said[row] += 1
        return self._logits()

    def keep(self, rows: Sequence[int]) -> None:
        self.rows = [self.rows[row] for row in rows]

    def _next(self, row: int) -> int:
        said = self.said[row]
        return self.script[row][said] if said < len(self.script[row]) else DOT

    def _logits(self) -> Tensor:
        self.batches.append(len(self.rows))
        logits = torch.full((len(self.rows), VOCAB), -30.0)
        for i, row in enumerate(self.rows):
            logits[i, self._next(row)] = math.nan if row == self.bad_row else 30.0
        return logits


def run(decoder: ScriptedDecoder, *requests: RolloutRequest) -> list[RolloutGroup]:
    wave = Wave(requests, decoder, TEXT, 3)
    groups = []
    while not wave.done:
        groups += wave.advance()
    return groups


def texts(group: RolloutGroup) -> list[str]:
    return [completion.text for completion in group.completions]


def test_completions_come_in_the_order_of_their_streams_whatever_ends_first() -> None:
    decoder = ScriptedDecoder("long one$", "a$", "middle$", "bb$")
    (group,) = run(decoder, request(n=4, max_tokens=20))
    assert texts(group) == ["long one", "a", "middle", "bb"]
    assert {completion.finish_reason for completion in group.completions} == {FinishReason.STOP}
    assert all(completion.token_ids[-1] == END_ID for completion in group.completions)


def test_each_group_is_given_out_as_soon_as_it_is_complete() -> None:
    decoder = ScriptedDecoder("slower$", "x$", "quick$", "y$")
    first, second = request(n=2, seed=1, max_tokens=20), request(n=2, seed=2, max_tokens=20)
    wave = Wave([first, second], decoder, TEXT, 0)
    assert [group.request for group in wave.advance()] == [second]
    assert not wave.done
    assert [group.request for group in wave.advance()] == [first]
    assert wave.done


def test_groups_that_end_with_the_same_token_come_together() -> None:
    requests = request(n=1, seed=1), request(n=1, seed=2)
    assert len(Wave(requests, ScriptedDecoder("ab$", "cd$"), TEXT, 0).advance()) == 2


def test_finished_sequences_leave_the_batch() -> None:
    decoder = ScriptedDecoder("a$", "bbbb$", "c$", "dddd$")
    run(decoder, request(n=4, max_tokens=20))
    assert decoder.batches == [4, 4, 2, 2, 2]


def test_few_finished_sequences_stay_until_they_are_worth_a_move() -> None:
    decoder = ScriptedDecoder("a$", *["bbb$"] * 39)
    (group,) = run(decoder, request(n=40, max_tokens=20))
    assert decoder.batches == [40, 40, 40, 40]
    assert texts(group) == ["a", *["bbb"] * 39]


def test_a_completion_at_the_limit_is_truncated() -> None:
    (group,) = run(ScriptedDecoder("abcdef", "ab$"), request(n=2, max_tokens=3))
    assert texts(group) == ["abc", "ab"]
    assert [completion.truncated for completion in group.completions] == [True, False]


def test_a_stop_text_stays_in_text_and_tokens() -> None:
    (group,) = run(ScriptedDecoder("1</a>2", "<a></a>"), request(n=2, max_tokens=30, stop=("</a>",)))
    assert texts(group) == ["1</a>", "<a></a>"]
    assert [len(completion.token_ids) for completion in group.completions] == [5, 7]


def test_completions_carry_the_policy_version_and_a_logprob_a_token() -> None:
    (group,) = run(ScriptedDecoder("ab$"), request(n=1))
    (completion,) = group.completions
    assert completion.policy_version == 3
    assert completion.sampling_logprobs == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)
    assert group.logprob_space == "tempered"


def test_a_repetition_penalty_counts_prompt_and_completion() -> None:
    class Choice(ScriptedDecoder):
        def step(self, tokens_B: Tensor) -> Tensor:
            return self._logits()

        def _logits(self) -> Tensor:
            # Token 5 is in the prompt; 6 is best until it was drawn; then 7; at last 5, least bad.
            logits = torch.full((1, VOCAB), -1000.0)
            logits[0, 5:8] = torch.tensor([4.0, 3.9, 3.0])
            return logits

    (group,) = run(Choice("..."), request((5,), n=1, max_tokens=4, temperature=0.0, repetition_penalty=2.0))
    assert group.completions[0].token_ids == (6, 7, 5, 5)


def test_logits_that_are_not_finite_name_sample_completion_and_token() -> None:
    decoder = ScriptedDecoder("abc$", "abc$")
    wave = Wave([request(n=2, seed=9)], decoder, TEXT, 0)
    decoder.bad_row = 1
    with pytest.raises(RolloutError, match=r"sample 'train-9': .* not finite at token 0 of completion 1[\s\S]*NaN"):
        wave.advance()


def test_waves_keep_groups_whole_and_put_like_lengths_together() -> None:
    requests = [request((1,) * length, n=3, seed=length) for length in (9, 2, 7, 1, 8)]
    waves = plan_waves(requests, 7)
    assert [[len(r.prompt_ids) for r in wave] for wave in waves] == [[1, 2], [7, 8], [9]]


def test_a_group_larger_than_a_wave_goes_alone() -> None:
    requests = [request(n=2, seed=1), request(n=9, seed=2), request(n=2, seed=3)]
    assert [[r.n for r in wave] for wave in plan_waves(requests, 4)] == [[2], [9], [2]]


def test_waves_have_one_set_of_parameters_each() -> None:
    greedy: dict[str, Any] = {"temperature": 0.0}
    requests = [request(seed=1), request(seed=2, **greedy), request(seed=3), request(seed=4, **greedy)]
    assert [[r.seed for r in wave] for wave in plan_waves(requests, 100)] == [[1, 3], [2, 4]]


def test_no_requests_make_no_waves() -> None:
    assert plan_waves([], 4) == []

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from grpo_core.errors import RolloutError
from grpo_core.rollout.requests import check_requests
from grpo_core.types import ImageRef, RolloutRequest
from tests.core.rollout.make import request


def check(*requests: RolloutRequest, context_tokens: int | None = 20) -> None:
    check_requests(requests, vocab_size=272, context_tokens=context_tokens)


def test_requests_that_can_be_answered_pass() -> None:
    check(request(max_tokens=15), request((0, 271), n=1, max_tokens=1, temperature=0.0, top_k=5, stop=("x",)))


def test_without_a_known_context_any_length_passes() -> None:
    check(request(max_tokens=10_000), context_tokens=None)


def test_a_prompt_without_tokens_names_the_sample() -> None:
    with pytest.raises(RolloutError, match=r"sample 'train-7': its prompt has no tokens[\s\S]*datasets preview"):
        check(request(), request((), seed=7))


@pytest.mark.parametrize("token", [-1, 272])
def test_a_token_that_the_model_does_not_know_names_both(token: int) -> None:
    with pytest.raises(RolloutError, match=rf"has the token {token}, and the model knows 0 to 271[\s\S]*tokenizer"):
        check(request((5, token)))


def test_a_prompt_that_leaves_no_room_says_what_does_not_fit() -> None:
    with pytest.raises(RolloutError, match=r"a prompt of 5 tokens and a completion of up to 16 do not fit .* of 20"):
        check(request(max_tokens=16))


def test_images_are_refused_where_text_only_is_read() -> None:
    asked = request()
    asked = replace(asked, sample=replace(asked.sample, images=(ImageRef(source="a.png"),)))
    with pytest.raises(RolloutError, match="has 1 image, and text only is read here"):
        check(asked)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 0),
        ("max_tokens", 0),
        ("temperature", -0.1),
        ("temperature", math.nan),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("top_k", -1),
        ("min_p", 1.0),
        ("repetition_penalty", 0.0),
        ("repetition_penalty", math.inf),
        ("stop", ("a", "")),
    ],
)
def test_a_parameter_out_of_its_range_is_named_with_it(name: str, value: Any) -> None:
    with pytest.raises(RolloutError, match=rf"{name} is [\s\S]*{name} must be"):
        check(request(**{name: value}))

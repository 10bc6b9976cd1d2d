"""Prompts: rendered, encoded, and what happens to long ones."""

from __future__ import annotations

from typing import Any

import pytest

from grpo_core.data.prompts import render_prompts
from grpo_core.errors import DataError
from grpo_core.types import Message, Sample
from tests.tiny_models import START_ID, make_tokenizer

FRAME = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
FRAME_TOKENS = 19


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return make_tokenizer()


def samples(*contents: str) -> list[Sample]:
    return [
        Sample(messages=(Message(role="user", content=content),), id=f"train-{index:06d}")
        for index, content in enumerate(contents)
    ]


def test_a_prompt_is_the_template_and_its_tokens(tokenizer: Any) -> None:
    rendered = render_prompts(samples("hi"), tokenizer, max_prompt_tokens=None, over_long="drop")
    (prompt,) = rendered.prompts
    assert prompt.text == FRAME.format("hi")
    assert prompt.token_ids[0] == START_ID
    assert len(prompt.token_ids) == FRAME_TOKENS + 2
    assert tokenizer.decode(prompt.token_ids) == prompt.text
    assert (rendered.dropped, rendered.truncated, rendered.warnings) == (0, 0, ())


def test_long_prompts_are_dropped_counted_and_mentioned(tokenizer: Any) -> None:
    limit = FRAME_TOKENS + 3
    rendered = render_prompts(samples("abc", "abcd", "a"), tokenizer, max_prompt_tokens=limit, over_long="drop")
    assert [prompt.sample.id for prompt in rendered.prompts] == ["train-000000", "train-000002"]
    assert (rendered.dropped, rendered.truncated) == (1, 0)
    assert rendered.warnings == ("1 of 3 train prompts have more than 22 tokens and are left out",)


def test_a_long_prompt_can_be_an_error_that_names_the_sample(tokenizer: Any) -> None:
    with pytest.raises(DataError, match=r"sample train-000001: its prompt has 23 tokens, and at most 20 are allowed"):
        render_prompts(samples("a", "abcd"), tokenizer, max_prompt_tokens=20, over_long="error")


def test_a_long_prompt_can_lose_its_beginning_and_keeps_the_turn_that_is_to_be_answered(tokenizer: Any) -> None:
    rendered = render_prompts(samples("abcd", "a"), tokenizer, max_prompt_tokens=21, over_long="truncate")
    first, second = rendered.prompts
    assert len(first.token_ids) == 21
    assert FRAME.format("abcd").endswith(first.text)
    assert first.text.endswith("abcd<|im_end|>\n<|im_start|>assistant\n")
    assert second.text == FRAME.format("a")
    assert (rendered.dropped, rendered.truncated) == (0, 1)
    assert rendered.warnings == ("1 of 2 train prompts have more than 21 tokens and lost their beginning",)


def test_no_prompt_left_is_an_error_with_the_lengths(tokenizer: Any) -> None:
    with pytest.raises(
        DataError, match=r"no prompt is left: all 2 are longer than the 16 tokens allowed; the shortest has 20"
    ):
        render_prompts(samples("abcde", "a"), tokenizer, max_prompt_tokens=16, over_long="drop")


def test_no_samples_are_no_prompts(tokenizer: Any) -> None:
    assert render_prompts([], tokenizer, max_prompt_tokens=16, over_long="drop").prompts == ()


def test_a_conversation_that_the_template_refuses_names_the_sample() -> None:
    strict = make_tokenizer()
    strict.chat_template = "{{ raise_exception('System role not supported') }}"
    with pytest.raises(DataError, match=r"sample train-000000: the chat template cannot write .*\(user\): System role"):
        render_prompts(samples("a"), strict, max_prompt_tokens=None, over_long="drop")


def test_a_tokenizer_without_template_is_mentioned() -> None:
    from grpo_core.model.tokenizer import FALLBACK_TEMPLATE

    plain = make_tokenizer(chat_template=False)
    plain.chat_template = FALLBACK_TEMPLATE
    rendered = render_prompts(samples("hi"), plain, max_prompt_tokens=None, over_long="drop")
    assert rendered.prompts[0].text == "### User:\nhi\n\n### Assistant:\n"
    assert "has no chat template" in rendered.warnings[0]


def test_a_token_that_the_model_has_no_embedding_for_is_named(tokenizer: Any) -> None:
    assert render_prompts(samples("a"), tokenizer, max_prompt_tokens=None, over_long="drop", vocabulary=259).prompts
    with pytest.raises(DataError, match=r"train-000000: its prompt has the token 258 \('<\|im_end\|>'\)"):
        render_prompts(samples("a"), tokenizer, max_prompt_tokens=None, over_long="drop", vocabulary=258)

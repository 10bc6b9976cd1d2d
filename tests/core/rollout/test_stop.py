from __future__ import annotations

import pytest

from grpo_core.rollout.stop import CompletionText, StopRule
from grpo_core.types import FinishReason, SamplingParams
from tests.tiny_models import END_ID, PAD_ID, START_ID, make_tokenizer

TEXT = CompletionText(make_tokenizer(), {END_ID})


def tokens(text: str) -> list[int]:
    return list(make_tokenizer()(text)["input_ids"])


def first_end(token_ids: list[int], max_tokens: int = 1000, stop: tuple[str, ...] = ()) -> tuple[int, str | None]:
    """How many tokens a completion has when it ends, and why."""
    rule = StopRule(SamplingParams(max_tokens=max_tokens, stop=stop), TEXT)
    for length in range(1, len(token_ids) + 1):
        if reason := rule(token_ids[:length]):
            return length, reason
    return len(token_ids), None


def test_text_leaves_out_end_and_pad_tokens_only() -> None:
    assert TEXT([*tokens("ab"), PAD_ID, *tokens("c"), START_ID, END_ID]) == "abc<|im_start|>"


def test_text_is_not_cleaned_up() -> None:
    assert TEXT(tokens(" a , b ! don 't ")) == " a , b ! don 't "


def test_text_of_no_tokens_is_empty() -> None:
    assert TEXT([END_ID]) == ""


def test_any_end_token_ends_a_completion() -> None:
    rule = StopRule(SamplingParams(max_tokens=9), CompletionText(make_tokenizer(), {END_ID, START_ID}))
    assert rule([65]) is None
    assert rule([65, START_ID]) is FinishReason.STOP
    assert rule([65, END_ID]) is FinishReason.STOP


def test_the_limit_ends_a_completion() -> None:
    assert first_end(tokens("abcdef"), max_tokens=4) == (4, FinishReason.LENGTH)


def test_an_end_token_at_the_limit_is_no_truncation() -> None:
    assert first_end([*tokens("abc"), END_ID], max_tokens=4) == (4, FinishReason.STOP)


def test_a_stop_text_is_met_across_token_borders() -> None:
    assert first_end(tokens("1 + 2</answer> and more"), stop=("</answer>",)) == (14, FinishReason.STOP)


def test_the_first_of_several_stop_texts_ends_it() -> None:
    assert first_end(tokens("one two three"), stop=("three", "two")) == (7, FinishReason.STOP)


def test_a_stop_text_of_several_bytes_a_character_is_met_at_its_last_byte() -> None:
    text = "na\u00efve \u2192 \U0001f642 end"
    expected = len("na\u00efve \u2192 \U0001f642".encode())
    assert first_end(tokens(text), stop=("\u2192 \U0001f642",)) == (expected, FinishReason.STOP)


def test_a_stop_text_far_into_a_completion_is_met() -> None:
    assert first_end(tokens("\u00e9" * 300 + "STOP!"), stop=("STOP",)) == (604, FinishReason.STOP)


def test_a_special_token_can_be_part_of_a_stop_text() -> None:
    assert first_end([*tokens("a"), START_ID, *tokens("user")], stop=("<|im_start|>us",)) == (4, FinishReason.STOP)


@pytest.mark.parametrize("near_miss", ["</answe", "</answer ", "< /answer>"])
def test_what_only_looks_like_a_stop_text_does_not_end_it(near_miss: str) -> None:
    assert first_end(tokens(near_miss + "x"), stop=("</answer>",)) == (len(near_miss) + 1, None)

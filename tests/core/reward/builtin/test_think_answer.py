"""format_reward."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.reward.builtin.think_answer import format_reward


@pytest.mark.parametrize(
    "text",
    [
        "<think>a</think><answer>b</answer>",
        " \n<think>\r\na\n</think>\r\n\r\n<answer>\nb\n</answer>\n\n",
        "<think></think><answer></answer>",
        "<think>if a < b && b > c</think><answer>1 < 2</answer>",
        "<think>先</think>\u3000<answer>九</answer>",
    ],
)
def test_one_thought_and_one_answer_score_1(text: str) -> None:
    assert format_reward([text]) == [1.0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<think>a</think>",
        "<answer>b</answer>",
        "a</think><answer>b</answer>",
        "<think>a</think><answer>b</answer> and more",
        "well: <think>a</think><answer>b</answer>",
        "<think>a</think>so<answer>b</answer>",
        "<think>a</think><think>b</think><answer>c</answer>",
        "<think>a</think><answer>b</answer><answer>c</answer>",
        "<think>a<think>b</think></think><answer>c</answer>",
        "<answer>b</answer><think>a</think>",
        "<think>a<answer>b</think></answer>",
        "</think>a<think></answer>b<answer>",
        "<think>a</think><answer>b</answer",
        "<Think>a</Think><answer>b</answer>",
    ],
)
def test_anything_else_scores_0(text: str) -> None:
    assert format_reward([text]) == [0.0]


def test_a_think_tag_at_the_end_of_the_prompt_counts() -> None:
    texts = ["a</think><answer>b</answer>", "<think>a</think><answer>b</answer>"]
    assert format_reward(texts, prompts=["assistant: <think>\n"] * 2) == [1.0, 0.0]
    assert format_reward(texts, prompts=["write <think> first. assistant:"] * 2) == [0.0, 1.0]


@given(st.text(alphabet="ab <>/", max_size=20), st.text(alphabet="ab <>/", max_size=20))
def test_what_the_blocks_hold_does_not_matter(thought: str, answer: str) -> None:
    assert format_reward([f"<think>{thought}</think>\n<answer>{answer}</answer>"]) == [1.0]


def test_time_is_linear_in_the_length() -> None:
    began = time.perf_counter()
    format_reward(["<think>" + "</think><answer>" * 200_000, "<think>" + "x" * 5_000_000])
    assert time.perf_counter() - began < 10.0

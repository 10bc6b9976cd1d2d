"""react_format."""

from __future__ import annotations

import pytest

from grpo_core.reward.builtin.react import react_format


@pytest.mark.parametrize(
    "text",
    [
        "<think>a</think>\nAction: search\nAction Input: grpo",
        '<think>a</think> Action: search\nAction Input: {"q":\n "grpo"}\n',
        "<think>a</think>\n\nAction: now\nAction Input:",
    ],
)
def test_a_thought_and_one_call_score_1(text: str) -> None:
    assert react_format([text]) == [1.0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<think>a</think>",
        "Action: search\nAction Input: grpo",
        "<think>a</think>\nAction: search",
        "<think>a</think>\nAction Input: grpo\nAction: search",
        "<think>a</think>\nAction:\nAction Input: grpo",
        "<think>a</think>\nlet us\nAction: search\nAction Input: grpo",
        "<think>a</think>\nAction: search\nbecause\nAction Input: grpo",
        "<think>a</think><think>b</think>\nAction: search\nAction Input: grpo",
        "<think>a</think>\nAction: search\nAction Input: grpo\nObservation: found it",
        "<think>a</think>\nAction: search\nAction Input: grpo\nAction: again\nAction Input: grpo",
    ],
)
def test_anything_else_scores_0_above_all_an_observation_it_made_up(text: str) -> None:
    assert react_format([text]) == [0.0]


def test_a_think_tag_at_the_end_of_the_prompt_counts() -> None:
    assert react_format(["a</think>\nAction: search\nAction Input: x"], prompts=["assistant: <think>"]) == [1.0]

"""The warning about a format that nobody asks for."""

from __future__ import annotations

import pytest

from grpo_core.data.preflight import preflight_warnings
from grpo_core.data.prompts import Prompt
from grpo_core.types import Message, Sample

FORMAT = "grpo-core/format_reward"


def prompt(text: str) -> Prompt:
    return Prompt(sample=Sample(messages=(Message(role="user", content=text),)), text=text, token_ids=(1,))


def test_format_reward_without_a_prompt_that_asks_for_its_tags_is_warned_about() -> None:
    (warning,) = preflight_warnings([FORMAT], [prompt("6*7?"), prompt("Use <think>.")])
    assert "no prompt asks for them" in warning
    assert "--system" in warning


@pytest.mark.parametrize(
    ("rewards", "texts"),
    [
        ([FORMAT], ["6*7?", "Reason in <think></think>, answer in <answer></answer>."]),
        (["grpo-rewards-math/countdown_reward"], ["6*7?"]),
        (["./mine.py:format_reward"], ["6*7?"]),
        ([FORMAT], []),
    ],
)
def test_there_is_no_warning_when_a_prompt_asks_or_nobody_checks(rewards: list[str], texts: list[str]) -> None:
    assert preflight_warnings(rewards, [prompt(text) for text in texts]) == ()

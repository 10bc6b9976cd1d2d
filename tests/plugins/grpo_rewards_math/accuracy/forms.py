"""Completions around an answer."""

from __future__ import annotations

from grpo_rewards_math.accuracy.reward import judge

__all__ = ["boxed", "tagged"]


def boxed(answer: str, reference: object) -> float | None:
    """The score of an answer in a box in an answer block."""
    return judge(f"<think>t</think>\n<answer>\\boxed{{{answer}}}</answer>", reference)


def tagged(answer: str, reference: object) -> float | None:
    """The score of an answer in an answer block."""
    return judge(f"<think>t</think><answer>{answer}</answer>", reference)

"""What the tiny model is made for, and what the recipe `clevr-count-tiny` trains it on."""

from __future__ import annotations

from random import Random

from grpo_datasets_vision.options import ClevrCountOptions

__all__ = ["TASK", "answer_text", "careless", "prompt_text"]

TASK = ClevrCountOptions(instruction="<think></think><answer></answer>", pixels=112, min_count=3, max_count=10)


def prompt_text(question: str) -> str:
    """A question as the dataset asks it."""
    return f"{question} {TASK.instruction}"


def answer_text(count: int) -> str:
    """An answer as the tiny model writes it."""
    return f"<think></think><answer>{count}</answer>"


def careless(count: int, random: Random) -> int:
    """What a careless counter says: it is right one time in four, and else overlooks one or two objects."""
    return max(TASK.min_count, count - random.choice((0, 1, 1, 2)))

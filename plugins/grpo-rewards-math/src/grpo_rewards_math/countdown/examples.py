"""Solved problems as earlier turns: they show the form of an answer to a model that knows no tags."""

from __future__ import annotations

import re
from itertools import islice

from grpo_core.api import Message
from grpo_rewards_math.countdown.options import CountdownOptions
from grpo_rewards_math.countdown.puzzle import Puzzle
from grpo_rewards_math.countdown.source import puzzles
from grpo_rewards_math.countdown.wording import render

__all__ = ["solved_turns"]

_SEED = 0
"""The same examples whatever the run's seed: they are part of the task."""


def solved_turns(options: CountdownOptions) -> tuple[Message, ...]:
    """`options.examples` questions with answers, of the kind that the options ask for. They are of the training split:
    no evaluation problem is given away."""
    shown = islice(puzzles(options, split="train", seed=_SEED), options.examples)
    return tuple(message for puzzle in shown for message in _turn(puzzle, options))


def _turn(puzzle: Puzzle, options: CountdownOptions) -> tuple[Message, Message]:
    steps, solution = "; ".join(map(_spaced, puzzle.steps)), _spaced(puzzle.solution)
    return (
        Message(role="user", content=render(options, puzzle.nums, puzzle.target)),
        Message(role="assistant", content=f"<think>{steps}</think><answer>{solution}</answer>"),
    )


def _spaced(text: str) -> str:
    return re.sub(r"([-+*/=])", r" \1 ", text)

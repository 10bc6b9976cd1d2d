"""What the tiny model is warmed up on: Countdown prompts with well-formed answers that often miss the target.

A careful answer solves the problem. A careless one adds the numbers up, whatever the target. A model that imitates both
knows the form and some arithmetic, mostly adds, is right now and then, and has something to learn from rewards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from random import Random

from grpo_rewards_math.countdown.options import CountdownOptions
from grpo_rewards_math.countdown.puzzle import Puzzle, draw
from grpo_rewards_math.countdown.source import puzzles
from grpo_rewards_math.countdown.wording import render
from grpo_rewards_math.tiny_model.lesson import Demonstration, WarmUp

__all__ = ["TASK", "answer_text", "batches", "demonstrate"]

TASK = CountdownOptions(max_numbers=3, max_value=12, operations="+-*", style="short")
"""What the model is warmed up for, and what the recipe `countdown-tiny` trains it on."""

_POOL_PUZZLES = 5_000
"""How many different problems are shown: most of the training split; finding the last ones takes long."""


def batches(settings: WarmUp) -> Iterator[list[Demonstration]]:
    """Batches of demonstrations on training problems, without an end."""
    random = Random(settings.seed)
    pool = list(islice(puzzles(TASK, split="train", seed=settings.seed), _POOL_PUZZLES))
    while True:
        drawn = random.choices(pool, k=settings.batch)
        yield [demonstrate(puzzle, TASK, careful_share=settings.careful_share, random=random) for puzzle in drawn]


def demonstrate(puzzle: Puzzle, options: CountdownOptions, *, careful_share: float, random: Random) -> Demonstration:
    """Show the numbers in a random order and answer carefully, with the given probability, or carelessly."""
    shown = replace(puzzle, nums=tuple(random.sample(puzzle.nums, len(puzzle.nums))))
    answered = shown if random.random() < careful_share else _add_up(shown, random)
    return Demonstration(prompt=render(options, shown.nums, shown.target), answer=answer_text(answered))


def answer_text(puzzle: Puzzle) -> str:
    """Write a solution as the tiny model does: the steps, then the expression."""
    return f"<think>{' '.join(puzzle.steps)}</think><answer>{puzzle.solution}</answer>"


def _add_up(puzzle: Puzzle, random: Random) -> Puzzle:
    added = draw(random, puzzle.nums, "+", in_order=True)
    assert added is not None  # only divisions can fail
    return added

"""Rows of `math_basics`: seeded, each problem once, and never the same in training and evaluation.

Which split a problem belongs to is a property of the problem itself (a hash of its text), so no sizes, seeds or options
can make the splits overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from itertools import islice
from random import Random
from typing import Literal

from grpo_core.api import DataError
from grpo_rewards_math.basics.options import MathBasicsOptions
from grpo_rewards_math.basics.problem import Problem, draw
from grpo_rewards_math.basics.wording import render

__all__ = ["TASK", "problems", "rows", "split_of"]

Split = Literal["train", "evaluation"]

TASK = "math"
"""What the column `task` says: rewards that claim this task score the rows."""
_EVALUATION_SHARE = 1 / 6
_DEFAULT_ROWS = 20_000
_PATIENCE_DRAWS = 5_000
"""Draws in a row without a new problem after which there are taken to be no more."""


def rows(options: MathBasicsOptions, *, split: Split, seed: int) -> Iterator[Mapping[str, object]]:
    """Yield rows with `problem`, `solution`, `kind` and `task`: `options.rows` of them for training, for evaluation all
    there are. Raises `DataError` when there are fewer training rows than `options.rows`."""
    wanted = (options.rows or _DEFAULT_ROWS) if split == "train" else None
    count = 0
    for problem in islice(problems(options, split=split, seed=seed), wanted):
        count += 1
        yield {
            "problem": render(problem, options),
            "solution": problem.solution,
            "kind": problem.kind,
            "task": TASK,
        }
    if split == "train" and options.rows and count < options.rows:
        raise DataError(
            f"math_basics: {options.rows} rows are asked for, and these options allow only {count} different problems",
            hint="Ask for fewer rows. There are more with more kinds, more numbers or a larger max_value.",
        )


def problems(options: MathBasicsOptions, *, split: Split, seed: int) -> Iterator[Problem]:
    """Yield the problems of a split in random order, each once. Ends when there seem to be no more."""
    random = Random(f"math basics {split} {seed}")
    seen: set[str] = set()
    barren_draws = 0
    while barren_draws < _PATIENCE_DRAWS:
        barren_draws += 1
        problem = draw(random, options)
        if problem.question not in seen and split_of(problem) == split:
            seen.add(problem.question)
            barren_draws = 0
            yield problem


def split_of(problem: Problem) -> Split:
    """The split that a problem belongs to, whatever made it."""
    digest = blake2b(problem.question.encode(), digest_size=8).digest()
    return "evaluation" if int.from_bytes(digest, "big") < _EVALUATION_SHARE * 2**64 else "train"

"""Rows of `code_basics`: seeded, each function once, and never the same in training and evaluation.

Which split a function belongs to is a property of what it does (a hash of its results on fixed inputs), so no wording,
sizes, seeds or options can make the splits overlap. Expected results come from running the reference solution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from random import Random
from typing import Any, Literal

from grpo_core.api import DataError
from grpo_rewards_code.basics.cases import behaviour, draw_cases
from grpo_rewards_code.basics.function import Function, draw_function
from grpo_rewards_code.basics.options import CodeBasicsOptions
from grpo_rewards_code.basics.testing import make_tests, solution_of
from grpo_rewards_code.basics.wording import render

__all__ = ["TASK", "Problem", "problems", "rows", "split_of"]

Split = Literal["train", "evaluation"]

TASK = "code"
"""What the column `task` says: rewards that claim this task score the rows."""
_EVALUATION_SHARE = 1 / 6
_DEFAULT_ROWS = 2_000
_PATIENCE_DRAWS = 2_000
"""Draws in a row without a new function after which there are taken to be no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A function to write, and what is expected of it."""

    function: Function
    cases: tuple[tuple[Any, Any], ...]
    """Arguments with their results."""


def rows(options: CodeBasicsOptions, *, split: Split, seed: int) -> Iterator[Mapping[str, object]]:
    """Yield rows with `problem`, `tests`, `solution`, `kind` and `task`: `options.rows` of them for training, for
    evaluation all there are. Raises `DataError` when there are fewer training rows than `options.rows`."""
    wanted = (options.rows or _DEFAULT_ROWS) if split == "train" else None
    forms = Random(f"code basics forms {split} {seed}")
    count = 0
    for problem in islice(problems(options, split=split, seed=seed), wanted):
        count += 1
        form = forms.choice(options.forms)
        yield {
            "problem": render(problem.function, form, options),
            "tests": make_tests(form, problem.cases),
            "solution": solution_of(problem.function, form),
            "kind": problem.function.kind,
            "task": TASK,
        }
    if split == "train" and options.rows and count < options.rows:
        raise DataError(
            f"code_basics: {options.rows} rows are asked for, and these options allow only {count} different functions",
            hint="Ask for fewer rows. There are more with more kinds or a larger max_steps.",
        )


def problems(options: CodeBasicsOptions, *, split: Split, seed: int) -> Iterator[Problem]:
    """Yield the problems of a split in random order, no two of which do the same, until there seem to be no more."""
    random = Random(f"code basics {split} {seed}")
    seen: set[bytes] = set()
    barren_draws = 0
    while barren_draws < _PATIENCE_DRAWS:
        barren_draws += 1
        steps = random.randint(options.min_steps, options.max_steps)
        function = draw_function(random, options.kinds[random.randrange(len(options.kinds))], steps)
        if function is None:
            continue
        key = _digest(function)
        if key in seen or _split(key) != split:
            continue
        cases = draw_cases(random, function, options.tests)
        if cases is not None:
            seen.add(key)
            barren_draws = 0
            yield Problem(function=function, cases=cases)


def split_of(function: Function) -> Split:
    """The split that a function belongs to, whatever made it."""
    return _split(_digest(function))


def _digest(function: Function) -> bytes:
    return blake2b(behaviour(function).encode(), digest_size=8).digest()


def _split(digest: bytes) -> Split:
    return "evaluation" if int.from_bytes(digest, "big") < _EVALUATION_SHARE * 2**64 else "train"

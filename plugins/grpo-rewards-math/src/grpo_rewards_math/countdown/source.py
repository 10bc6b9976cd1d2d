"""Countdown problems without a download: exact, solvable, seeded, and never the same in training and evaluation.

Which split a problem belongs to is a property of the problem itself (a hash of its numbers and target), so no sizes,
seeds or options can make the splits overlap. Rows come one by one, as they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from itertools import islice
from random import Random
from typing import Literal

from grpo_core.api import DataError
from grpo_rewards_math.countdown.options import CountdownOptions
from grpo_rewards_math.countdown.puzzle import Puzzle, draw

__all__ = ["puzzles", "rows", "split_of"]

Split = Literal["train", "evaluation"]

_EVALUATION_SHARE = 1 / 6
_WIDER = "There are more with a wider min_value..max_value or min_target..max_target, or with more operations."
_DEFAULT_ROWS = 20_000
_PATIENCE_DRAWS = 20_000
"""Draws in a row without a new problem after which there are taken to be no more."""


def rows(options: CountdownOptions, *, split: Split, seed: int) -> Iterator[Mapping[str, object]]:
    """Yield rows with `nums`, `target` and a `solution`: `options.rows` of them for training, for evaluation all there
    are. Raises `DataError` when there are none, or fewer training rows than `options.rows`."""
    wanted = (options.rows or _DEFAULT_ROWS) if split == "train" else None
    count = 0
    for puzzle in islice(puzzles(options, split=split, seed=seed), wanted):
        count += 1
        yield {"nums": list(puzzle.nums), "target": puzzle.target, "solution": puzzle.solution}
    if count == 0:
        raise DataError(f"countdown: these options allow no {split} problem", hint=_WIDER)
    if split == "train" and options.rows and count < options.rows:
        raise DataError(
            f"countdown: these options allow only {count} different train problems, and {options.rows} were asked for",
            hint=f"Ask for fewer rows. {_WIDER}",
        )


def puzzles(options: CountdownOptions, *, split: Split, seed: int) -> Iterator[Puzzle]:
    """Yield the problems of a split in random order, each once; the order of the numbers makes no other problem.

    Ends when there seem to be no more: rare ones may be missed.
    """
    random = Random(f"countdown {split} {seed}")
    seen: set[bytes] = set()
    barren_draws = 0
    while barren_draws < _PATIENCE_DRAWS:
        barren_draws += 1
        puzzle = draw(random, _draw_numbers(random, options), options.operations)
        if puzzle is None or not options.min_target <= puzzle.target <= options.max_target:
            continue
        key = _digest(puzzle.nums, puzzle.target)
        if _split(key) == split and key not in seen:
            seen.add(key)
            barren_draws = 0
            yield puzzle


def split_of(nums: list[int] | tuple[int, ...], target: int) -> Split:
    """The split that a problem belongs to, whatever made it and in whatever order its numbers stand."""
    return _split(_digest(nums, target))


def _draw_numbers(random: Random, options: CountdownOptions) -> list[int]:
    count = options.min_numbers + int(random.random() * (options.max_numbers - options.min_numbers + 1))
    values = options.max_value - options.min_value + 1
    return [options.min_value + int(random.random() * values) for _ in range(count)]


def _digest(nums: list[int] | tuple[int, ...], target: int) -> bytes:
    return blake2b(f"{sorted(nums)} {target}".encode(), digest_size=8).digest()


def _split(digest: bytes) -> Split:
    return "evaluation" if int.from_bytes(digest, "big") < _EVALUATION_SHARE * 2**64 else "train"

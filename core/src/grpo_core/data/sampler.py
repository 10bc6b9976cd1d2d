"""Data order: what a step asks, as a pure function of the step, so that resuming needs no state.

The prompts of a run form an endless stream, and step s takes the next `prompts_per_step` of it. With several datasets
the stream is woven of one stream each: the n-th prompt of a dataset of share w is due at (n + 1/2) / w, and the prompts
come in the order they are due. So the shares are exact over a long run, and after N prompts each dataset is within
1/2 + w·k/2 prompts of N·w, for k datasets.

The prompts of one dataset are one seeded permutation of its rows after another (an epoch each). A batch may straddle
two epochs, so no row is skipped; such a batch can hold a row twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil
from random import Random
from typing import NamedTuple

from grpo_core.errors import DataError

__all__ = ["Draw", "check_batch", "draws", "permutation", "row_of", "shares", "taken_before"]

_HALF = Fraction(1, 2)


class Draw(NamedTuple):
    """One prompt of a step, before it is known which row it is."""

    dataset: int
    """Position of the dataset."""
    number: int
    """How many prompts of this dataset came before it in the run."""


def shares(weights: Sequence[float]) -> tuple[Fraction, ...]:
    """Weights as shares of 1, exactly: 0.7 means seven tenths, not the nearest binary fraction."""
    exact = [Fraction(str(weight)) for weight in weights]
    return tuple(weight / sum(exact) for weight in exact)


def draws(step: int, *, shares: Sequence[Fraction], prompts_per_step: int) -> tuple[Draw, ...]:
    """What step `step`, counted from 1, takes of which dataset."""
    taken = taken_before((step - 1) * prompts_per_step, shares)
    drawn = []
    for _ in range(prompts_per_step):
        dataset = _next_due(taken, shares)
        drawn.append(Draw(dataset, taken[dataset]))
        taken[dataset] += 1
    return tuple(drawn)


def row_of(number: int, *, rows: int, seed: int, name: str = "") -> int:
    """The row (0 to `rows` - 1) of a dataset's prompt `number`; `name` is that of a dataset in a mix."""
    epoch, position = divmod(number, rows)
    return permutation(epoch, rows=rows, seed=seed, name=name)[position]


def check_batch(rows: int, share: Fraction, prompts_per_step: int, *, name: str = "") -> None:
    """Raise `DataError` when a step asks a dataset for more prompts than it has rows."""
    if share * prompts_per_step <= rows:
        return
    if share == 1:
        raise DataError(
            f"a step takes {prompts_per_step} prompts, and the training data has only {rows}",
            hint=f"Set --prompts-per-step {rows}{' or less' if rows > 1 else ''}, or give more rows.",
        )
    raise DataError(
        f"a step takes {prompts_per_step} prompts, {float(share * prompts_per_step):g} of them from {name}, which has "
        f"only {rows} to train on",
        hint=f"Give {name} a smaller weight or more rows, take fewer of them for evaluation, or lower "
        "run.prompts_per_step.",
    )


@lru_cache(maxsize=16)
def permutation(epoch: int, *, rows: int, seed: int, name: str = "") -> tuple[int, ...]:
    """The order of all rows of a dataset in an epoch, counted from 0."""
    order = list(range(rows))
    Random(f"data order {seed} {epoch} {name}".rstrip()).shuffle(order)
    return tuple(order)


def taken_before(position: int, shares: Sequence[Fraction]) -> list[int]:
    """How many prompts of each dataset are among the first `position` of the run.

    Fewer than `position` are due before the time `position` - k, so only the last few are counted one by one.
    """
    early = max(0, position - len(shares))
    taken = [max(0, ceil(early * share - _HALF)) for share in shares]
    for _ in range(position - sum(taken)):
        taken[_next_due(taken, shares)] += 1
    return taken


def _next_due(taken: Sequence[int], shares: Sequence[Fraction]) -> int:
    """The dataset whose next prompt is due first; of several the first one."""
    return min(range(len(shares)), key=lambda dataset: (taken[dataset] + _HALF) / shares[dataset])

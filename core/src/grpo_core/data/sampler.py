"""Data order: which rows a step asks, as a pure function of the step, so that resuming needs no state.

The rows form an endless stream, one seeded permutation of all rows after another (an epoch each), and step s takes
the next `prompts_per_step` of it. A batch may straddle two epochs, so no row is skipped; such a batch can hold a row
twice.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random

from grpo_core.errors import DataError

__all__ = ["batch_indices", "check_batch", "epoch_of", "permutation"]


def batch_indices(step: int, *, rows: int, prompts_per_step: int, seed: int) -> tuple[int, ...]:
    """The rows (0 to `rows` - 1) of step `step`, counted from 1."""
    start = (step - 1) * prompts_per_step
    return tuple(
        permutation(position // rows, rows=rows, seed=seed)[position % rows]
        for position in range(start, start + prompts_per_step)
    )


def epoch_of(step: int, *, rows: int, prompts_per_step: int) -> float:
    """Epochs done before step `step` begins: 0.0 at step 1, 1.5 when the second epoch is half over."""
    return (step - 1) * prompts_per_step / rows


def check_batch(rows: int, prompts_per_step: int) -> None:
    """Raise `DataError` when a step asks for more prompts than there are."""
    if prompts_per_step > rows:
        raise DataError(
            f"a step takes {prompts_per_step} prompts, and the training data has only {rows}",
            hint=f"Set run.prompts_per_step to a value from 1 to {rows}, or give more rows.",
        )


@lru_cache(maxsize=2)
def permutation(epoch: int, *, rows: int, seed: int) -> tuple[int, ...]:
    """The order of all rows in an epoch, counted from 0."""
    order = list(range(rows))
    Random(f"data order {seed} {epoch}").shuffle(order)
    return tuple(order)

"""Data order: each epoch is a permutation, and any step can be computed alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.data.sampler import batch_indices, check_batch, epoch_of, permutation
from grpo_core.errors import DataError

SIZES = st.integers(1, 40).flatmap(lambda rows: st.tuples(st.just(rows), st.integers(1, rows)))


@given(sizes=SIZES, seed=st.integers(0, 5), epochs=st.integers(1, 4))
def test_every_epoch_of_the_stream_is_a_permutation(sizes: tuple[int, int], seed: int, epochs: int) -> None:
    rows, prompts = sizes
    steps = -(-epochs * rows // prompts)
    stream = [i for s in range(1, steps + 1) for i in batch_indices(s, rows=rows, prompts_per_step=prompts, seed=seed)]
    for epoch in range(epochs):
        assert sorted(stream[epoch * rows : (epoch + 1) * rows]) == list(range(rows))


@given(sizes=SIZES, seed=st.integers(0, 5), steps=st.lists(st.integers(1, 200), min_size=1, max_size=6))
def test_a_step_does_not_depend_on_which_steps_were_asked_before(
    sizes: tuple[int, int], seed: int, steps: list[int]
) -> None:
    rows, prompts = sizes

    def batch(step: int) -> tuple[int, ...]:
        return batch_indices(step, rows=rows, prompts_per_step=prompts, seed=seed)

    alone = []
    for step in steps:
        permutation.cache_clear()
        alone.append(batch(step))
    assert [batch(step) for step in steps] == alone


def test_the_order_is_the_same_on_every_machine_and_differs_by_seed_and_epoch() -> None:
    assert permutation(0, rows=8, seed=0) == (3, 0, 1, 5, 6, 2, 7, 4)
    assert permutation(0, rows=8, seed=1) != permutation(0, rows=8, seed=0)
    assert permutation(1, rows=8, seed=0) != permutation(0, rows=8, seed=0)


def test_a_batch_that_straddles_two_epochs_takes_the_end_of_one_and_the_start_of_the_next() -> None:
    first, second = permutation(0, rows=5, seed=3), permutation(1, rows=5, seed=3)
    assert batch_indices(2, rows=5, prompts_per_step=3, seed=3) == (*first[3:], second[0])


def test_epochs_are_counted_from_zero_at_the_first_step() -> None:
    assert [epoch_of(step, rows=8, prompts_per_step=4) for step in (1, 2, 3, 4)] == [0.0, 0.5, 1.0, 1.5]


def test_more_prompts_than_rows_names_the_values_that_work() -> None:
    check_batch(8, 8)
    with pytest.raises(DataError, match=r"takes 9 prompts.*has only 8(.|\n)*from 1 to 8"):
        check_batch(8, 9)

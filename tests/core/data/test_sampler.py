"""Data order: each epoch is a permutation, shares are exact, and any step can be computed alone."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.data.sampler import Draw, check_batch, draws, permutation, row_of, shares, taken_before
from grpo_core.errors import DataError

WEIGHTS = st.lists(st.integers(1, 40).map(lambda tenths: tenths / 10), min_size=1, max_size=5)
HALF = Fraction(1, 2)


def stream(weights: list[float], prompts: int) -> list[Draw]:
    """The first prompts of a run."""
    return list(draws(1, shares=shares(weights), prompts_per_step=prompts))


@given(rows=st.integers(1, 40), seed=st.integers(0, 5), epochs=st.integers(1, 4))
def test_every_epoch_of_a_dataset_is_a_permutation(rows: int, seed: int, epochs: int) -> None:
    asked = [row_of(number, rows=rows, seed=seed) for number in range(epochs * rows)]
    for epoch in range(epochs):
        assert sorted(asked[epoch * rows : (epoch + 1) * rows]) == list(range(rows))


@given(weights=WEIGHTS, prompts=st.integers(1, 9), steps=st.lists(st.integers(1, 200), min_size=1, max_size=6))
def test_a_step_does_not_depend_on_the_steps_before(weights: list[float], prompts: int, steps: list[int]) -> None:
    whole = stream(weights, max(steps) * prompts)
    for step in steps:
        alone = draws(step, shares=shares(weights), prompts_per_step=prompts)
        assert list(alone) == whole[(step - 1) * prompts : step * prompts]


@given(weights=WEIGHTS, prompts=st.integers(1, 300))
def test_each_dataset_is_drawn_from_in_its_own_order_and_none_is_left_out(weights: list[float], prompts: int) -> None:
    numbers: dict[int, list[int]] = {}
    for draw in stream(weights, prompts):
        numbers.setdefault(draw.dataset, []).append(draw.number)
    assert all(drawn == list(range(len(drawn))) for drawn in numbers.values())


@given(weights=WEIGHTS, prompts=st.integers(0, 10**9))
def test_shares_are_kept_within_half_a_prompt_and_half_a_share_for_each_dataset(
    weights: list[float], prompts: int
) -> None:
    taken = taken_before(prompts, shares(weights))
    assert sum(taken) == prompts
    for count, share in zip(taken, shares(weights), strict=True):
        assert abs(count - prompts * share) <= HALF + share * len(weights) / 2


@given(weights=WEIGHTS, prompts=st.integers(0, 60))
def test_what_was_taken_before_is_the_count_of_the_stream(weights: list[float], prompts: int) -> None:
    counted = Counter(draw.dataset for draw in stream(weights, prompts))
    assert taken_before(prompts, shares(weights)) == [counted[place] for place in range(len(weights))]


def test_seven_to_three_is_exactly_that_in_every_ten() -> None:
    assert [draw.dataset for draw in stream([0.7, 0.3], 10)] == [0, 1, 0, 0, 0, 1, 0, 0, 1, 0]
    for tenth in range(50):
        part = stream([0.7, 0.3], 500)[tenth * 10 : (tenth + 1) * 10]
        assert Counter(draw.dataset for draw in part) == {0: 7, 1: 3}


def test_weights_are_what_was_written_not_the_nearest_binary_fraction() -> None:
    assert shares([0.1, 0.2]) == (Fraction(1, 3), Fraction(2, 3))
    assert shares([3]) == (1,)


def test_the_order_is_the_same_on_every_machine_and_differs_by_seed_epoch_and_dataset() -> None:
    assert permutation(0, rows=8, seed=0) == (3, 0, 1, 5, 6, 2, 7, 4)
    others = [
        permutation(0, rows=8, seed=1),
        permutation(1, rows=8, seed=0),
        permutation(0, rows=8, seed=0, name="a"),
        permutation(0, rows=8, seed=0, name="b"),
    ]
    assert len({permutation(0, rows=8, seed=0), *others}) == 5


def test_the_end_of_an_epoch_is_followed_by_the_start_of_the_next() -> None:
    first, second = permutation(0, rows=5, seed=3), permutation(1, rows=5, seed=3)
    assert [row_of(number, rows=5, seed=3) for number in (3, 4, 5)] == [*first[3:], second[0]]


def test_more_prompts_than_rows_names_the_values_that_work() -> None:
    check_batch(8, Fraction(1), 8)
    for rows, advice in ((8, "Set --prompts-per-step 8 or less, or"), (1, "Set --prompts-per-step 1, or")):
        with pytest.raises(DataError, match=f"takes 9 prompts, and the training data has only {rows}") as caught:
            check_batch(rows, Fraction(1), 9)
        assert str(caught.value.hint).startswith(advice)


def test_a_dataset_too_small_for_its_share_of_a_step_is_named() -> None:
    check_batch(4, Fraction(1, 2), 8, name="code")
    with pytest.raises(DataError, match=r"takes 9 prompts, 4\.5 of them from code, which has only 4(.|\n)*smaller"):
        check_batch(4, Fraction(1, 2), 9, name="code")

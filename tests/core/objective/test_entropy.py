"""The top-entropy threshold: how many tokens stay, ties, and that order and grouping do not matter."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.objective.entropy import counted_entropies, top_entropy_masks, top_entropy_threshold

entropies = st.lists(st.integers(0, 20).map(lambda n: n / 4), min_size=1, max_size=40)
shares = st.floats(0.01, 1.0)


def test_the_threshold_is_the_least_entropy_of_the_top_share() -> None:
    # Ten tokens, the top 20 %: 0.9 and 0.8.
    assert top_entropy_threshold([0.1 * n for n in range(10)], 0.2) == pytest.approx(0.8)


@pytest.mark.parametrize(("share", "kept"), [(0.1, 3), (0.11, 4), (1.0, 30), (1e-6, 1)])
def test_the_share_is_rounded_up_but_not_for_a_rounding_error(share: float, kept: int) -> None:
    values = [float(n) for n in range(30)]
    assert sum(value >= top_entropy_threshold(values, share) for value in values) == kept


def test_tokens_that_tie_stay_together() -> None:
    values = [1.0, 2.0, 2.0, 2.0, 3.0]
    threshold = top_entropy_threshold(values, 0.4)
    assert [value >= threshold for value in values] == [False, True, True, True, True]


def test_without_a_token_the_threshold_leaves_nothing_out() -> None:
    assert top_entropy_threshold([], 0.2) == -math.inf


def test_the_masks_come_from_one_threshold_over_all_members_in_the_loss() -> None:
    # In the loss: 1, 2, 3, 4; the top half is 3 and 4. The 9s belong to a completion out of the loss.
    step = [[[1.0, 4.0], [9.0, 9.0]], [[2.0], [3.0]]]
    masks = top_entropy_masks(step, top_entropy_threshold(counted_entropies(step, [[True, False], [True, True]]), 0.5))
    assert masks == (((False, True), (True, True)), ((False,), (True,)))


@settings(max_examples=40, deadline=None)
@given(values=entropies, share=shares)
def test_a_share_of_the_tokens_stays_and_only_ties_add_to_it(values: list[float], share: float) -> None:
    threshold = top_entropy_threshold(values, share)
    least = math.ceil(share * len(values) - 1e-9)
    assert sum(value > threshold for value in values) < max(1, least) <= sum(value >= threshold for value in values)


@settings(max_examples=40, deadline=None)
@given(values=entropies, share=shares, data=st.data())
def test_neither_order_nor_grouping_changes_who_stays(values: list[float], share: float, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(values)))
    parts = [[values[cut:]], [values[:cut]]]
    whole = top_entropy_masks([[values]], top_entropy_threshold(values, share))[0][0]
    threshold = top_entropy_threshold(counted_entropies(parts, [[True], [True]]), share)
    first, second = top_entropy_masks(parts, threshold)
    assert (*second[0], *first[0]) == whole

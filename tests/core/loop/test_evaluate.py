"""Accuracy and pass@k."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.loop.evaluate import is_correct, pass_at_k, reward_metrics_by_task
from grpo_core.types import Failed
from tests.core.loop.make import scored_group


@pytest.mark.parametrize(
    ("n", "correct", "k", "expected"),
    [(4, 0, 2, 0.0), (4, 4, 1, 1.0), (4, 1, 1, 0.25), (4, 1, 2, 0.5), (4, 2, 2, 1 - 1 / 6), (3, 1, 3, 1.0)],
)
def test_pass_at_k_of_hand_counted_draws(n: int, correct: int, k: int, expected: float) -> None:
    assert pass_at_k(n, correct, k) == pytest.approx(expected)


@given(st.data())
def test_pass_at_k_is_the_share_of_draws_with_a_correct_answer(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 7))
    correct = data.draw(st.integers(0, n))
    k = data.draw(st.integers(1, n))
    draws = list(combinations(range(n), k))
    share = sum(any(answer < correct for answer in draw) for draw in draws) / len(draws)
    assert pass_at_k(n, correct, k) == pytest.approx(share)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ({"a": [1.0]}, True),
        ({"a": [0.0]}, False),
        ({"a": [None]}, None),
        ({"a": [Failed("x")]}, None),
        ({"a": [1.0], "b": [None]}, True),
        ({"a": [1.0], "b": [0.5]}, False),
        ({"a": [1.0], "b": [Failed("x")]}, None),
    ],
)
def test_an_answer_is_correct_when_every_verifying_reward_that_applies_says_so(
    outcomes: dict[str, list[float | Failed | None]], expected: bool | None
) -> None:
    group = scored_group([1.0], outcomes=outcomes)
    assert is_correct(group, 0, list(outcomes)) is expected


def test_each_task_has_its_mean_reward_with_its_standard_error() -> None:
    scored = [
        *(scored_group([total], columns={"task": "math"}) for total in (1.0, 0.0, 1.0, 0.0)),
        scored_group([0.5], columns={"task": "code"}),
        scored_group([None], columns={"task": "code"}),
        scored_group([9.0], columns={"solution": "42"}),
    ]
    assert reward_metrics_by_task(scored) == {
        "eval/tasks/math/prompts": 4.0,
        "eval/tasks/math/reward_mean": 0.5,
        "eval/tasks/math/reward_se": pytest.approx((1 / 3) ** 0.5 / 2),
        "eval/tasks/code/prompts": 2.0,
        "eval/tasks/code/reward_mean": 0.5,
    }

"""From what a function returned to three-valued outcomes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from grpo_core.reward.outcomes import LARGEST_SCORE, WrongReturnError, all_failed, read_outcomes, weighed
from grpo_core.types import Failed, Outcome


@pytest.mark.parametrize(
    "returned",
    [
        [1.0, 0.0],
        (1, 0),
        [True, False],
        np.array([1.0, 0.0]),
        np.array([1, 0]),
        np.array([True, False]),
        [np.float32(1), np.int64(0)],
        torch.tensor([1.0, 0.0]),
        torch.tensor([1.0, 0.0], requires_grad=True),
        [torch.tensor(1.0), torch.tensor(0)],
        [np.array(1.0), 0],
    ],
)
def test_numbers_of_any_kind_become_floats(returned: object) -> None:
    outcomes = read_outcomes(returned, 2)
    assert outcomes == (1.0, 0.0)
    assert all(type(outcome) is float for outcome in outcomes)


def test_none_in_a_list_is_kept_and_a_bare_none_is_none_for_all() -> None:
    assert read_outcomes([1, None], 2) == (1.0, None)
    assert read_outcomes(None, 3) == (None, None, None)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400])
def test_what_is_not_finite_fails_for_its_own_sample_alone(value: float) -> None:
    first, second = read_outcomes([0.5, value], 2)
    assert first == 0.5
    assert isinstance(second, Failed)
    assert "not a finite number" in second.reason


@pytest.mark.parametrize("value", [1e300, -1e155, 1.1e12, 10**200])
def test_a_finite_score_that_no_total_can_hold_fails_for_its_own_sample_alone(value: float) -> None:
    first, second = read_outcomes([LARGEST_SCORE, value], 2)
    assert first == LARGEST_SCORE
    assert isinstance(second, Failed)
    assert f"returned {float(value):g}, which is beyond ±1e+12" in second.reason


@pytest.mark.parametrize("outcome", [1.0, -LARGEST_SCORE, None, Failed("no")])
def test_a_weight_that_a_total_can_hold_leaves_an_outcome_as_it_is(outcome: Outcome) -> None:
    assert weighed(outcome, 1.0) is outcome


def test_a_score_that_its_weight_makes_too_large_has_failed_and_names_both() -> None:
    outcome = weighed(-1e11, 1e9)
    assert isinstance(outcome, Failed)
    assert outcome.reason == "returned -1e+11, which times its weight 1e+09 is beyond ±1e+12"


@pytest.mark.parametrize(
    ("returned", "count", "message"),
    [
        ([1.0], 4, "returned 1 score for 4 completions"),
        ([1.0, 0.0], 1, "returned 2 scores for 1 completion"),
        ([], 2, "returned 0 scores for 2 completions"),
        (0.5, 2, r"returned a float \(0.5\); expected a list of 2 scores"),
        ({"score": 1.0}, 1, r"returned a dict \(\{'score': 1.0\}\); expected a list of 1 score"),
        ("01", 2, r"returned a str \('01'\)"),
        ((value for value in [1.0]), 1, "returned a generator"),
        ([[1.0], [0.0]], 2, r"returned a list \(\[1.0\]\) at position 0; a score is a number, None or Failed"),
        (["1.0", 0.0], 2, r"returned a str \('1.0'\) at position 0"),
        ([0.0, 1j], 2, r"returned a complex \(1j\) at position 1"),
        (np.ones((2, 1)), 2, r"returned a ndarray of shape \(2, 1\)"),
        (torch.tensor(1.0), 1, r"returned a Tensor of shape \(\)"),
        ([torch.ones(1), 0.0], 2, r"returned a Tensor of shape \(1,\) at position 0"),
        (np.array(["a"]), 1, r"returned a str \('a'\) at position 0"),
        ("x" * 99, 1, r"\('x+\.\.\.\)"),
    ],
)
def test_a_wrong_return_is_refused_with_what_came_and_what_was_expected(
    returned: object, count: int, message: str
) -> None:
    with pytest.raises(WrongReturnError, match=message):
        read_outcomes(returned, count)


def test_a_failed_call_fails_for_each_of_its_samples() -> None:
    assert all_failed("why", 2) == (Failed("why"), Failed("why"))


def test_a_reward_can_say_itself_that_one_sample_failed() -> None:
    assert read_outcomes([1.0, Failed("the service was away"), None], 3) == (1.0, Failed("the service was away"), None)

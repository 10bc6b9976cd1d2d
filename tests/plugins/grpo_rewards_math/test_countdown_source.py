"""The procedural source: exact, solvable, seeded, without repeats, and with splits that never meet."""

from itertools import islice
from random import Random

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from grpo_core.api import DataError
from grpo_rewards_math.countdown.options import CountdownOptions
from grpo_rewards_math.countdown.reward import countdown_reward
from grpo_rewards_math.countdown.source import rows, split_of

SEEDS = st.integers(0, 10**9)
SIZES = st.integers(1, 60)


@st.composite
def all_options(draw):
    few, many = sorted((draw(st.integers(2, 5)), draw(st.integers(2, 5))))
    return CountdownOptions(
        min_numbers=few,
        max_numbers=many,
        max_value=draw(st.integers(15, 99)),
        max_target=draw(st.integers(50, 500)),
        operations=draw(st.sampled_from(["+-", "+-*", "+-*/", "*+"])),
        rows=draw(SIZES),
    )


def take(options, split, seed, count):
    return list(islice(rows(options, split=split, seed=seed), count))


def problem(row):
    return (*sorted(row["nums"]), row["target"])


@settings(max_examples=25, deadline=None)
@given(all_options(), SEEDS)
def test_every_problem_fits_the_options_and_is_solved_by_its_solution(options, seed):
    try:
        evaluation = take(options, "evaluation", seed, 5)
    except DataError:  # few options allow problems for training alone
        reject()
    for row in [*rows(options, split="train", seed=seed), *evaluation]:
        assert options.min_numbers <= len(row["nums"]) <= options.max_numbers
        assert all(options.min_value <= number <= options.max_value for number in row["nums"])
        assert options.min_target <= row["target"] <= options.max_target
        answer = f"<think></think><answer>{row['solution']}</answer>"
        assert countdown_reward([answer], [row["nums"]], [row["target"]]) == [1.0]


@settings(max_examples=25, deadline=None)
@given(all_options(), all_options(), SEEDS, SEEDS, SIZES)
def test_training_and_evaluation_never_share_a_problem(options, others, seed, other_seed, count):
    train = {problem(row) for row in rows(options, split="train", seed=seed)}
    held_out = {problem(row) for row in take(others, "evaluation", other_seed, count)}
    assert len(held_out) == count
    assert not train & held_out


def test_all_of_a_small_space_is_dealt_to_one_split_or_the_other():
    small = CountdownOptions(max_numbers=3, max_value=5, operations="+-", max_target=15)
    train = {problem(row) for row in rows(small, split="train", seed=0)}
    held_out = {problem(row) for row in rows(small, split="evaluation", seed=0)}
    assert not train & held_out
    assert train | held_out == {problem(row) for row in _both(small, seed=1)}
    assert 0.05 < len(held_out) / len(train | held_out) < 0.25


def _both(options, seed):
    return [*rows(options, split="train", seed=seed), *rows(options, split="evaluation", seed=seed)]


@settings(deadline=None)
@given(st.lists(st.integers(0, 99), min_size=2, max_size=5), st.integers(0, 999), SEEDS)
def test_the_split_of_a_problem_does_not_depend_on_the_order_of_its_numbers(nums, target, seed):
    shuffled = Random(seed).sample(nums, len(nums))
    assert split_of(nums, target) == split_of(shuffled, target)


@settings(max_examples=10, deadline=None)
@given(SEEDS, st.sampled_from(["train", "evaluation"]))
def test_no_problem_comes_twice_even_with_its_numbers_in_another_order(seed, split):
    problems = [problem(row) for row in take(CountdownOptions(max_numbers=3, max_value=9), split, seed, 150)]
    assert len(set(problems)) == len(problems) == 150


def test_the_seed_decides_the_rows_and_more_rows_begin_with_the_same():
    few, many = CountdownOptions(rows=20), CountdownOptions(rows=50)
    assert take(few, "train", 3, None) == take(many, "train", 3, 20)
    assert take(few, "train", 3, None) != take(few, "train", 4, None)


def test_without_a_number_of_rows_all_are_made_when_they_are_few():
    small = CountdownOptions(max_numbers=3, max_value=5, operations="+-")
    assert 50 < len(list(rows(small, split="train", seed=0))) < 200


def test_more_training_rows_than_there_are_problems_is_an_error_that_says_how_many_there_are():
    small = CountdownOptions(max_numbers=3, max_value=5, operations="+-", rows=1000)
    with pytest.raises(DataError, match=r"allow only \d+ different train problems, and 1000 were asked for") as caught:
        list(rows(small, split="train", seed=0))
    assert "Ask for fewer rows" in str(caught.value)


@pytest.mark.parametrize("split", ["train", "evaluation"])
def test_options_that_allow_no_problem_are_an_error(split):
    with pytest.raises(DataError, match=f"these options allow no {split} problem"):
        next(rows(CountdownOptions(min_target=500, max_target=500, max_value=3, operations="+"), split=split, seed=0))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"min_numbers": 5}, "min_numbers = 5 is larger than max_numbers = 4"),
        ({"min_value": 20, "max_value": 10}, "min_value = 20 is larger than max_value = 10"),
        ({"min_target": 101}, "min_target = 101 is larger than max_target = 100"),
        ({"operations": "+^"}, r"'\+\^' is not a choice of"),
        ({"operations": ""}, "is not a choice of"),
        ({"operations": "++"}, "without repeats"),
        ({"template": "Make {target}."}, r"the template lacks \{numbers\}"),
        ({"template": "Hello"}, r"the template lacks \{numbers\} and \{target\}"),
        ({"difficulty": 3}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_make_no_sense_are_refused(setting, message):
    with pytest.raises(ValidationError, match=message):
        CountdownOptions(**setting)

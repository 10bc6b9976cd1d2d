"""Puzzles are solved by construction: their expressions and steps are checked by arithmetic that they don't share."""

from fractions import Fraction
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_rewards_math.countdown.puzzle import draw
from grpo_rewards_math.countdown.reward import countdown_reward

NUMBERS = st.lists(st.integers(0, 99), min_size=2, max_size=6)
OPERATIONS = st.text(alphabet="+-*/", min_size=1, max_size=4)
SEEDS = st.integers(0, 10**6)


@settings(deadline=None)
@given(SEEDS, NUMBERS, OPERATIONS, st.booleans())
def test_the_solution_uses_every_number_once_and_makes_the_target(seed, nums, operations, in_order):
    puzzle = draw(Random(seed), nums, operations, in_order=in_order)
    if puzzle is not None:
        answer = f"<think></think><answer>{puzzle.solution}</answer>"
        assert countdown_reward([answer], [list(puzzle.nums)], [puzzle.target]) == [1.0]
        assert puzzle.nums == tuple(nums)


@settings(deadline=None)
@given(SEEDS, NUMBERS, st.booleans())
def test_the_steps_are_true_and_never_leave_the_non_negative_integers(seed, nums, in_order):
    puzzle = draw(Random(seed), nums, "+-*/", in_order=in_order)
    if puzzle is None:
        return
    for step in puzzle.steps:
        left, operation, right, value = _parts(step)
        assert value >= 0
        exact = {"+": left + right, "-": left - right, "*": left * right}
        assert (Fraction(left, right) if operation == "/" else exact[operation]) == value
    assert len(puzzle.steps) == len(nums) - 1
    assert _parts(puzzle.steps[-1])[3] == puzzle.target


def _parts(step):
    expression, value = step.split("=")
    operation = next(sign for sign in "+-*/" if sign in expression)
    left, right = expression.split(operation)
    return int(left), operation, int(right), int(value)


@settings(deadline=None)
@given(SEEDS, NUMBERS, OPERATIONS)
def test_only_the_given_operations_are_used(seed, nums, operations):
    puzzle = draw(Random(seed), nums, operations)
    if puzzle is not None:
        assert set(puzzle.solution) & set("+-*/") <= set(operations)


def test_a_division_with_a_remainder_or_by_zero_is_not_taken():
    assert {draw(Random(seed), [7, 2], "/") for seed in range(20)} == {None}
    assert {draw(Random(seed), [5, 0], "/") for seed in range(20)} == {None}


def test_the_larger_value_stands_first():
    assert {draw(Random(seed), [3, 9], "+").solution for seed in range(20)} == {"9+3"}
    assert {draw(Random(seed), [3, 9], "-").solution for seed in range(20)} == {"9-3"}


def test_in_order_combines_from_left_to_right():
    assert {draw(Random(seed), [2, 3, 4], "+", in_order=True).steps for seed in range(20)} == {("3+2=5", "5+4=9")}


def test_parentheses_are_written_where_the_value_needs_them_and_only_there():
    solutions = {draw(Random(seed), [9, 4, 3], "-*").solution for seed in range(300)}
    assert {"(9-4)*3", "9*4-3", "9-4-3", "9*4*3"} <= solutions
    assert not solutions & {"(9*4)-3", "(9-4)-3", "9*(4*3)"}

"""Countdown's judge: exact, safe, and quick on anything."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_rewards_math.countdown.expression import NotAnExpressionError, parse, plain
from grpo_rewards_math.countdown.numbers import read_number, read_numbers
from grpo_rewards_math.countdown.reward import countdown_reward


def judge(answer: str, nums: object, target: object) -> float | None:
    return countdown_reward([f"<think>t</think>\n<answer>{answer}</answer>"], [nums], [target])[0]


@pytest.mark.parametrize(
    ("answer", "nums", "target"),
    [
        ("6/(1-3/4)", [6, 1, 3, 4], 24),
        ("1/49*49", [1, 49, 49], 1),
        ("((8 - 3)) * 4 = 20", [8, 3, 4], 20),
        ("\\boxed{3 \\times 4 + 5 = 17}", [3, 4, 5], 17),
        ("$$\\boxed{3*4} + 5$$ = \\boxed{17}", [3, 4, 5], 17),
        ("\\left( 8 − 3 \\right) \\cdot 4", [8, 3, 4], 20),
        ("\\dfrac{24}{6} ÷ 2", [24, 6, 2], 2),
        ("\\frac{8+4}{3}", [8, 4, 3], 4),
        ("\\(5 · 5 – 1\\)", [5, 5, 1], 24),
        ("（6－2）＊3＝12", [6, 2, 3], 12),
        ("-6*-2", [-6, -2], 12),
        ("-3+8", [3, 8], 5),
        ("8--3", [8, -3], 11),
        ("-(3-8)", [3, 8], 5),
        ("+3+8", [3, 8], 11),
        ("2.5*4", [2.5, 4], 10),
        ("7/2", [7, 2], 3.5),
        ("7/2", [7, 2], "7/2"),
        ("0*7", [0, 7], 0),
        ("6 ∗ 7 ➖ 2", [6, 7, 2], 40),
        ("+".join(["1"] * 9000), [1] * 9000, 9000),
        ("3-8 = -5", [3, 8], -5),
    ],
)
def test_an_answer_that_makes_the_target_scores_1(answer: str, nums: object, target: object) -> None:
    assert judge(answer, nums, target) == 1.0


@pytest.mark.parametrize(
    ("answer", "nums", "target"),
    [
        ("2**3", [2, 3], 8),
        ("7//2", [7, 2], 3),
        ("2^5", [2, 5], 7),
        ("10%4", [10, 4], 2),
        ("2.5*4", [2, 5, 4], 10),
        ("1e2-4", [1, 2, 4], 96),
        ("1_0+3", [1, 0, 3], 13),
        ("2$5", [2, 5], 25),
        ("2 5", [2, 5], 25),
        ("2\\,5", [2, 5], 25),
        ("24", [2, 4], 24),
        ("²3", [2, 3], 6),
        ("٣+4", [3, 4], 7),
        ("2(3+4)", [2, 3, 4], 14),
        ("6*7 apples", [6, 7], 42),
        ("-6*2", [-6, -2], -12),
        ("8-3", [8, -3], 5),
        ("(-(3))+8", [-3, 8], 5),
        ("1+1/999999999", [1, 1, 999999999], 1),
        ("5/(3-3)", [5, 3, 3], 5),
        ("\\frac{5}{3-3}", [5, 3, 3], 5),
        ("3*4 = 17", [3, 4, 5], 17),
        ("3*4+5 = 18", [3, 4, 5], 17),
        ("3*4+5 = 17 = 17", [3, 4, 5], 17),
        ("3*4+5 = 34/2", [3, 4, 5], 17),
        ("17 = 3*4+5", [3, 4, 5], 17),
        ("3*4+5 =", [3, 4, 5], 17),
        ("= 12", [3, 4], 12),
        ("", [3, 4], 12),
        ("\\boxed{3*4", [3, 4], 12),
        ("\\frac{3}", [3, 4], 12),
        ("3*4)", [3, 4], 12),
        ("()", [3, 4], 12),
        ("3*", [3, 4], 12),
        ("6*7", [], 42),
    ],
)
def test_anything_else_scores_0(answer: str, nums: object, target: object) -> None:
    assert judge(answer, nums, target) == 0.0


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ("<think>maybe <answer>3*4</answer></think><answer>3+4</answer>", 0.0),
        ("<think>maybe <answer>3+4</answer></think><answer>3*4</answer>", 1.0),
        ("<answer>3+4</answer><answer>3*4</answer>", 1.0),
        ("<think>x</think><answer>3*4</answer><think><answer>3+4</answer>", 1.0),
        ("<think>never ends <answer>3*4</answer>", 0.0),
        ("<think>x</think>3*4", 0.0),
        ("<think>x</think><answer>3*4", 0.0),
        ("<answer>3*4</answer>", 1.0),
        ("</answer>3*4<answer>", 0.0),
        ("", 0.0),
    ],
)
def test_the_answer_is_the_last_block_after_the_thinking(completion: str, score: float) -> None:
    assert countdown_reward([completion], [[3, 4]], [12]) == [score]


def test_a_thought_that_the_prompt_opened_holds_no_answer_until_it_is_closed() -> None:
    texts = ["<answer>3*4</answer>", "x</think><answer>3*4</answer>"]
    scores = countdown_reward(texts, [[3, 4]] * 2, [12] * 2, prompts=["assistant: <think>\n"] * 2)
    assert scores == [0.0, 1.0]


@pytest.mark.parametrize(
    "nums", [[6, 2, 3], (6, 2, 3), "[6, 2, 3]", "6, 2, 3", "6 2 3", ["6", "2", "3"], [6.0, 2.0, 3.0]]
)
@pytest.mark.parametrize("target", [12, "12", 12.0, " 12 ", np.int64(12), np.array(12), Fraction(12)])
def test_columns_may_have_any_sensible_type(nums: object, target: object) -> None:
    assert judge("(6-2)*3", nums, target) == 1.0


def test_an_array_is_a_list_of_numbers() -> None:
    assert judge("(6-2)*3", np.array([6, 2, 3]), 12) == 1.0
    assert read_numbers(np.array([0.5])) == (Fraction(1, 2),)


@pytest.mark.parametrize(
    ("nums", "target"),
    [
        (None, 12),
        ([6, 2, None], 12),
        ([6, True, 3], 12),
        ("six two three", 12),
        (6, 12),
        ([6, 2, 3], None),
        ([6, 2, 3], "twelve"),
        ([6, 2, 3], float("nan")),
        ([6, 2, 3], float("inf")),
        ([6, 2, 3], "1e999999999"),
        ([6, 2, 3], "1/0"),
        ([6, 2, 3], [12]),
        ([6, 2, 3], True),
    ],
)
def test_a_row_that_cannot_be_read_is_not_judged(nums: object, target: object) -> None:
    assert judge("(6-2)*3", nums, target) is None


def test_a_float_is_read_by_its_shortest_decimal_form() -> None:
    assert read_number(0.1) == Fraction(1, 10)
    assert read_number(1e16) == 10**16


@pytest.mark.parametrize(
    "answer",
    [
        "(" * 3000 + "5" + ")" * 3000,
        "-" * 99_000 + "5",
        "9" * 9000,
        "1/7+" * 24_000 + "1",
        "9**" * 3000 + "9",
        "(" * 5_000_000,
        "\\boxed{" * 1000 + "5" + "}" * 1000,
        "\\frac" * 2000,
        "= " * 4000,
        " " * 9000 + "x",
    ],
)
def test_hostile_text_is_judged_at_once(answer: str) -> None:
    began = time.perf_counter()
    assert judge(answer, [5, 5], 10) == 0.0
    assert time.perf_counter() - began < 5.0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2(3)", r"\( where the end should be"),
        ("(2", "the end where"),
        ("a+1", "'a\\+1' is no number and no operation"),
        ("1/0", "division by zero"),
        ("(" * 60 + "1" + ")" * 60, "nested deeper than 50"),
        ("1+1+1+1", "more than 3 numbers"),
        ("1" * 401, "400 digits"),
    ],
)
def test_what_is_no_expression_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(NotAnExpressionError, match=reason):
        parse(text, max_literals=3)


def test_text_beyond_any_answer_is_refused_by_its_length() -> None:
    with pytest.raises(NotAnExpressionError, match="longer than 100000 characters"):
        plain("1" * 100_001)


trees = st.recursive(
    st.integers(0, 99).map(str),
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({t[0]}{t[1]}{t[2]})"),
    max_leaves=8,
)


def exactly(text: str) -> Fraction | None:
    """The value by Python's own parser, over fractions."""
    wrapped = "".join(f" Fraction({part}) " if part.isdigit() else part for part in _split_digits(text))
    try:
        return eval(wrapped, {"Fraction": Fraction})  # noqa: S307 - text of this test's own making
    except ZeroDivisionError:
        return None


def _split_digits(text: str) -> list[str]:
    parts = [""]
    for character in text:
        if parts[-1] and parts[-1].isdigit() != character.isdigit():
            parts.append("")
        parts[-1] += character
    return parts


@given(trees)
def test_values_agree_with_exact_arithmetic(text: str) -> None:
    value = exactly(text)
    numbers = [int(part) for part in _split_digits(text) if part.isdigit()]
    if value is None:
        assert judge(text, numbers, 1) == 0.0
    else:
        assert judge(text, numbers, value) == 1.0
        assert judge(text, numbers, value + Fraction(1, 10**12)) == 0.0
        assert judge(text, [*numbers, 1], value) == 0.0


@given(st.text(alphabet="0123456789+-*/()= .\\{}boxedfrac$×÷−=", max_size=40))
def test_no_text_raises(text: str) -> None:
    assert judge(text, [1, 2], 3) in (0.0, 1.0)

"""`multimodal_accuracy`: mathematics first, then words; the thinking never scores."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_rewards_math.accuracy.multimodal import multimodal_accuracy, plain_words


def score(completion: str, solution: object, prompt: str = "") -> float | None:
    return multimodal_accuracy([completion], [solution], [prompt])[0]


def answered(answer: str) -> str:
    return f"<think>x</think>\n<answer>{answer}</answer>"


@pytest.mark.parametrize(
    ("answer", "solution"),
    [
        *(("10", "10.0"), ("1/2", "0.5"), ("5,000", "5000"), ("−5", "-5"), ("9π", r"9\pi"), ("0.5", r"\frac{1}{2}")),
        *(("3 objects", "3"), ("45 degrees", "45°"), (r"$45^\circ$", "45"), ("5cm", "5"), ("145", "145°")),
        *(("three", "3"), ("3", "three"), ("twenty-one", "21"), ("zero", "0"), ("Seven", "<answer> 7 </answer>")),
        *(("three cubes", "3"), ("Twenty-one objects", "21"), ("3 cubes", "three cubes")),
        *(("(B)", "B"), ("B", "(B)"), ("Option B", "B"), ("B)", "B"), ("B.", "B"), ("b", "B"), ("B: dog", "B")),
        *(("The answer is B", "B"), ("ABCD", "ABCD"), ("A", "a"), ("\nB\n", "<answer>B</answer>")),
        *(("Yes", "yes"), ("Yes.", "<answer> Yes </answer>"), ("true", "True"), ("left", "Left"), ("N/A", "n/a")),
        *(("a red car", "red car"), (" red  car ", "red car"), ("the cat", "cat"), (r"\text{red}", "red")),
        *(("12:30", "12:30"), ("红色", "红色"), ("“dog”", "dog"), ("ﬁsh", "fish"), ("traffic-light", "traffic light")),
    ],
)
def test_the_same_said_in_another_way_is_right(answer: str, solution: str) -> None:
    assert score(answered(answer), solution) == 1.0


@pytest.mark.parametrize(
    ("answer", "solution"),
    [
        *(("4", "3"), ("0.333", "1/3"), ("2", r"2\sqrt{3}"), ("5 cm", "6 cm"), ("3 apples", "4"), ("three", "13")),
        *(("more than 3", "3"), ("3 or 4", "3"), ("approximately 3", "3"), ("twenty", "21")),
        *(("two or three", "2"), ("two to three", "2"), ("three fewer than ten", "3"), ("one of them", "1")),
        *(("A, B, C, D", "B"), ("A or B", "B"), ("B and C", "B"), ("AB", "BA"), ("A", "an")),
        *(("dog", "cat"), ("dogs", "dog"), ("not red", "red"), ("no", "yes"), ("none", "0"), ("dog, cat", "cat, dog")),
        *(("-3", "3"), ("3", "-3"), ("$-3$", "3"), ("-1/2", "1/2"), ("-x", "x"), ("x-1", "x 1"), ("5!", "5")),
        *(("(0,1)", "[0,1]"), ("[2, 3)", "(2, 3)"), ("{1,2}", "(1,2)"), ("-red", "5"), ("3-4", "3 4"), ("+", "-")),
        *(("no", "No, it is not"), ("12:30", "12:45"), ("红色", "蓝色"), ("", "B"), ("…", "B"), ("the", "a")),
    ],
)
def test_something_else_is_wrong(answer: str, solution: str) -> None:
    assert score(answered(answer), solution) == 0.0


@pytest.mark.parametrize(
    ("completion", "prompt", "expected"),
    [
        ("<think>3</think><answer>4</answer>", "", 0.0),
        ("<think>it is 3", "", 0.0),
        ("<think>3</think>", "", 0.0),
        ("3</think><answer>4</answer>", "How many? <think>", 0.0),
        ("3", "How many? <think>", 0.0),
        ("4</think><answer>3</answer>", "How many? <think>", 1.0),
        ("<answer>3</answer><answer>4</answer>", "", 0.0),
        ("<answer>4</answer><answer>3</answer>", "", 1.0),
        (r"so \boxed{3}", "", 1.0),
        ("3", "", 1.0),
        ("<think>4</think> 3", "", 1.0),
        ("<answer></answer> 3", "", 0.0),
        ("", "", 0.0),
    ],
)
def test_the_answer_is_the_block_or_the_box_or_what_is_said_after_the_thinking(
    completion: str, prompt: str, expected: float
) -> None:
    assert score(completion, "3", prompt) == expected


@pytest.mark.parametrize("solution", [None, "", "  ", True, float("nan"), {"a": 1}, "<answer> </answer>"])
def test_without_a_reference_nothing_is_judged(solution: object) -> None:
    assert score(answered("3"), solution) is None
    assert score("", solution) is None


def test_a_reference_that_is_no_mathematics_is_judged_by_its_words() -> None:
    assert score(answered(r"\frac{1}{"), r"\frac{1}{") == 1.0
    assert score(answered("1"), r"\frac{1}{") == 0.0


@given(st.text(min_size=1, max_size=20))
def test_plain_words_are_plain(text: str) -> None:
    once = plain_words(text)
    assert plain_words(f"  {once} ") == plain_words(once)


@given(st.integers(-20, 20), st.integers(-20, 20))
def test_whole_numbers_are_right_exactly_when_they_are_equal(said: int, meant: int) -> None:
    assert score(answered(f" {said} "), f"<answer> {meant} </answer>") == float(said == meant)

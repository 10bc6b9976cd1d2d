"""`math_basics`: exact results, sound steps, seeded, without repeats, and with splits that never meet."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import islice
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from grpo_core.api import BuildContext, DataError
from grpo_rewards_math.basics.expression import Expression, draw_expression
from grpo_rewards_math.basics.options import MathBasicsOptions
from grpo_rewards_math.basics.problem import draw
from grpo_rewards_math.basics.prompt import make
from grpo_rewards_math.basics.source import problems, rows, split_of
from grpo_rewards_math.basics.wording import render
from grpo_rewards_math.countdown.expression import parse

SEEDS = st.integers(0, 10**9)
KINDS = ["expression", "equation", "remainder", "fraction"]


def value(text: str) -> Fraction:
    return parse(text, max_literals=20).value


def all_options(**more: object) -> MathBasicsOptions:
    return MathBasicsOptions.model_validate({"kinds": KINDS, "numbers": 4, "max_value": 30} | more)


@settings(max_examples=200, deadline=None)
@given(SEEDS)
def test_every_step_holds_and_the_last_one_gives_the_solution(seed: int) -> None:
    problem = draw(Random(seed), all_options())
    for step in problem.steps:
        left, right = step.split("=")
        assert value(left) == value(right)
    assert problem.steps[-1].split("=")[1] == problem.solution


@settings(max_examples=200, deadline=None)
@given(SEEDS)
def test_the_solution_is_that_of_the_question(seed: int) -> None:
    problem = draw(Random(seed), all_options())
    solution = value(problem.solution)
    if problem.kind == "equation":
        left, right = problem.question.split("=")
        assert value(left.replace("x", f"({solution})")) == value(right)
    elif problem.kind == "remainder":
        whole, divisor = map(int, problem.question.split(" mod "))
        assert solution == whole % divisor
    else:
        assert solution == value(problem.question)


def test_precedence_is_honoured_and_ignored_as_asked() -> None:
    expression = Expression(numbers=(7, 3, 4), operations="+*")
    assert expression.text == "7+3*4"
    assert expression.solve() == (("3*4=12", "7+12=19"), 19)
    assert expression.from_left_to_right() == (("7+3=10", "10*4=40"), 40)


def test_parentheses_come_first() -> None:
    expression = Expression(numbers=(9, 2, 3, 4), operations="-*-", inside=2)
    assert expression.text == "9-2*(3-4)"
    assert expression.solve() == (("3-4=-1", "2*-1=-2", "9--2=11"), 11)


@given(SEEDS)
def test_parentheses_are_written_only_where_they_matter(seed: int) -> None:
    drawn = draw_expression(Random(seed), numbers=3, max_value=9)
    if drawn.inside is not None:
        assert drawn.solve() != Expression(numbers=drawn.numbers, operations=drawn.operations).solve()


@pytest.mark.parametrize(
    ("kind", "solved", "mistaken"),
    [("equation", "8", "16"), ("remainder", "2", "3"), ("fraction", "5/6", "2/5")],
)
def test_the_usual_mistake_of_a_kind_is_another_value(kind: str, solved: str, mistaken: str) -> None:
    questions = {"equation": "2*x-4=12", "remainder": "17 mod 5", "fraction": "1/2+1/3"}
    options = MathBasicsOptions.model_validate({"kinds": [kind], "max_value": 8})
    found = next(
        p
        for split in ("train", "evaluation")
        for p in problems(options, split=split, seed=0)
        if p.question == questions[kind]
    )
    assert found.solution == solved
    assert found.mistaken[-1].split("=")[1] == mistaken


@settings(max_examples=15, deadline=None)
@given(SEEDS, SEEDS, st.integers(5, 30), st.integers(5, 30))
def test_training_and_evaluation_never_share_a_problem(seed: int, other: int, size: int, other_size: int) -> None:
    train = {p.question for p in islice(problems(all_options(max_value=size), split="train", seed=seed), 200)}
    held_out = {
        p.question for p in islice(problems(all_options(max_value=other_size), split="evaluation", seed=other), 200)
    }
    assert len(train) == len(held_out) == 200
    assert not train & held_out


def test_about_a_sixth_of_all_problems_is_held_out() -> None:
    random = Random(0)
    splits = [split_of(draw(random, all_options(max_value=1000))) for _ in range(2000)]
    assert 0.12 < splits.count("evaluation") / 2000 < 0.21


def test_the_seed_decides_the_rows_and_more_rows_begin_with_the_same() -> None:
    few, many = (list(rows(all_options(rows=count), split="train", seed=3)) for count in (20, 50))
    assert few == many[:20]
    assert few != list(rows(all_options(rows=20), split="train", seed=4))


def test_a_row_becomes_a_prompt_with_its_columns() -> None:
    options = MathBasicsOptions(kinds=("remainder",), max_value=5, style="short")
    row = next(iter(rows(options, split="train", seed=0)))
    sample = make(options, BuildContext())(row)
    assert sample is not None
    assert re.fullmatch(r"\d+ mod \d <think></think><answer></answer>", sample.messages[0].content)
    assert sample.columns == {"solution": row["solution"], "kind": "remainder", "task": "math"}
    assert sample.task == "math"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("expression", r"Calculate [\d(]+ [-+*] .+\.\n"),
        ("equation", r"Solve \d+ \* x [-+] \d+ = -?\d+ for x\.\n"),
        ("remainder", r"What is \d+ mod \d+, the remainder of the division\?\n"),
        ("fraction", r"Calculate \d+/\d+ [-+] \d+/\d+ exactly, as a fraction in lowest terms\.\n"),
    ],
)
def test_the_full_wording_explains_the_task_and_the_tags(kind: str, words: str) -> None:
    options = MathBasicsOptions.model_validate({"kinds": [kind]})
    for problem in islice(problems(options, split="train", seed=0), 50):
        text = render(problem, options)
        assert re.match(words, text), text
        assert all(tag in text for tag in ("<think></think>", "<answer></answer>"))


def test_more_training_rows_than_there_are_problems_is_an_error_that_says_how_many_there_are() -> None:
    options = MathBasicsOptions(kinds=("remainder",), max_value=5, rows=5000)
    with pytest.raises(
        DataError, match=r"5000 rows are asked for, and these options allow only \d+ different"
    ) as caught:
        list(rows(options, split="train", seed=0))
    assert "Ask for fewer rows" in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"kinds": []}, "is not a choice of kinds"),
        ({"kinds": ["equation", "equation"]}, "without repeats"),
        ({"kinds": ["integral"]}, "expression"),
        ({"numbers": 1}, "greater than or equal to 2"),
        ({"difficulty": 3}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_make_no_sense_are_refused(setting: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        MathBasicsOptions.model_validate(setting)

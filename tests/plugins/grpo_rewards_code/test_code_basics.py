"""`code_basics`: tests that only the reference solution passes, seeded, with splits that never meet."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from itertools import islice
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from grpo_core.api import BuildContext, DataError
from grpo_rewards_code.basics.cases import behaviour, draw_cases
from grpo_rewards_code.basics.function import Function, Step, draw_function, program, run, trace
from grpo_rewards_code.basics.operations import OPERATIONS
from grpo_rewards_code.basics.options import CodeBasicsOptions
from grpo_rewards_code.basics.prompt import make
from grpo_rewards_code.basics.source import problems, rows, split_of

SEEDS = st.integers(0, 10**9)
OPERATION = {operation.words: operation for operation in OPERATIONS}


def function(kind: str, *steps: str | tuple[str, int]) -> Function:
    made = [(step, None) if isinstance(step, str) else step for step in steps]
    return Function(kind=kind, steps=tuple(Step(operation=OPERATION[words], n=n) for words, n in made))  # type: ignore[arg-type]


def taken(split: str, count: int, seed: int = 0, **options: Any) -> list[Any]:
    return list(islice(problems(CodeBasicsOptions(**options), split=split, seed=seed), count))  # type: ignore[arg-type]


def test_a_program_is_one_line_a_step() -> None:
    made = function("list", ("add {n} to each element", 3), "take the sum")
    assert program(made.expressions) == "def f(x):\n    x = [v + 3 for v in x]\n    x = sum(x)\n    return x"
    assert run(program(made.expressions), [[1, 2], []]) == trace(made.expressions, [[1, 2], []]) == [9, 0]


def test_words_of_operations_are_different_and_each_runs_on_what_it_takes() -> None:
    assert len(OPERATION) == len(OPERATIONS)
    inputs = {"list": [[3, 1, 3], []], "string": ["Abc de", "x"], "number": [-7, 12]}
    types = {"list": list, "string": str, "number": int, "truth": bool}
    for operation in OPERATIONS:
        step = Step(operation=operation, n=operation.numbers and operation.numbers[1])
        assert "{n}" not in step.words + step.code
        assert [type(result) for result in trace([step.code], inputs[operation.takes])] == [types[operation.gives]] * 2


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_results_are_those_of_the_reference_and_no_shorter_program_has_them(seed: int) -> None:
    for problem in taken("train", 5, seed=seed):
        arguments, results = map(list, zip(*problem.cases, strict=True))
        steps = problem.function.expressions
        assert run(program(steps), arguments) == results
        assert any(result != results[0] for result in results)
        for left in range(len(steps)):
            with suppress(TypeError, AttributeError):  # where what is left does not fit together, it fails too
                assert trace([*steps[:left], *steps[left + 1 :]], arguments) != results


def test_a_function_that_does_nothing_of_its_own_is_not_asked_for() -> None:
    idle = function("string", "reverse the text", "reverse the text")
    assert draw_cases(Random(0), idle, 5) is None
    pointless = function("list", ("add {n} to each element", 1), "count the elements")
    assert draw_cases(Random(0), pointless, 5) is None


def test_a_truth_value_has_nothing_more_done_to_it() -> None:
    drawn = [draw_function(Random(seed), "arithmetic", 4) for seed in range(300)]
    assert None in drawn
    for each in filter(None, drawn):
        assert all(step.operation.gives != "truth" for step in each.steps[:-1])


def test_functions_that_do_the_same_are_one_and_stand_in_one_split() -> None:
    one = function("list", ("add {n} to each element", 1), ("add {n} to each element", 2))
    same = function("list", ("add {n} to each element", 3))
    other = function("list", ("add {n} to each element", 4))
    assert behaviour(one) == behaviour(same) != behaviour(other)
    assert split_of(one) == split_of(same)


@settings(max_examples=8, deadline=None)
@given(SEEDS, SEEDS)
def test_training_and_evaluation_never_share_a_function(seed: int, other: int) -> None:
    train = {behaviour(p.function) for p in taken("train", 100, seed=seed, max_steps=2)}
    held_out = {behaviour(p.function) for p in taken("evaluation", 60, seed=other)}
    assert (len(train), len(held_out)) == (100, 60)
    assert not train & held_out


def test_the_seed_decides_the_rows_and_more_rows_begin_with_the_same() -> None:
    few, many = (list(rows(CodeBasicsOptions(rows=count), split="train", seed=3)) for count in (10, 30))
    assert few == many[:10]
    assert few != list(rows(CodeBasicsOptions(rows=10), split="train", seed=4))


def test_options_choose_kinds_steps_and_the_number_of_tests() -> None:
    for problem in taken("train", 30, kinds=("string",), min_steps=2, max_steps=2, tests=3):
        assert problem.function.kind == "string"
        assert len(problem.function.steps) == 2
        assert len(problem.cases) == 3


def first_row(kind: str, form: str, **options: Any) -> dict[str, Any]:
    settings = CodeBasicsOptions.model_validate({"kinds": [kind], "forms": [form], **options})
    return dict(next(iter(rows(settings, split="train", seed=1))))


def test_the_tests_of_a_call_are_arguments_and_results() -> None:
    tests = first_row("list", "call")["tests"]
    assert tests["kind"] == "call"
    assert tests["fn_name"] == "f"
    assert len(tests["cases"]) == 5
    assert set(tests["cases"][0]) == {"args", "expected"}
    assert json.loads(json.dumps(tests)) == tests


@pytest.mark.parametrize("kind", ["list", "string", "arithmetic"])
def test_a_script_prints_what_its_tests_expect(kind: str) -> None:
    row = first_row(kind, "stdin")
    assert row["tests"]["kind"] == "stdin"
    for case in row["tests"]["cases"][:2]:
        done = subprocess.run(
            [sys.executable, "-c", row["solution"]], input=case["input"], capture_output=True, text=True, check=True
        )
        assert done.stdout == case["output"]


@pytest.mark.parametrize("kind", ["list", "string", "arithmetic"])
def test_assertions_hold_for_the_solution_and_not_for_another_program(kind: str) -> None:
    row = first_row(kind, "assert")
    checks = "\n".join(row["tests"]["code"])
    exec(row["solution"] + "\n" + checks, {})  # noqa: S102
    with pytest.raises(AssertionError):
        exec("def f(x): return x\n" + checks, {})  # noqa: S102


@pytest.mark.parametrize(
    ("form", "opening"),
    [
        ("call", "Write a Python function `f` that takes a list of whole numbers and returns the result."),
        ("assert", "Write a Python function `f` that takes a list of whole numbers"),
        ("stdin", "Write a Python program that reads a line of whole numbers"),
    ],
)
def test_the_full_wording_explains_the_task_and_the_tags(form: str, opening: str) -> None:
    text = first_row("list", form)["problem"]
    assert text.startswith(opening)
    assert "in this order: " in text
    assert all(part in text for part in ("<think></think>", "<answer></answer>", "```python"))


@pytest.mark.parametrize(("form", "opening"), [("call", "list: "), ("stdin", "stdin list: ")])
def test_the_short_wording_is_the_steps(form: str, opening: str) -> None:
    text = first_row("list", form, style="short")["problem"]
    assert text.startswith(opening)
    assert text.endswith(" <think></think><answer></answer>")


def test_a_row_becomes_a_prompt_with_its_columns() -> None:
    row = first_row("list", "call")
    sample = make(CodeBasicsOptions(), BuildContext())(row)
    assert sample is not None
    assert sample.messages[0].content == row["problem"]
    assert set(sample.columns) == {"tests", "solution", "kind", "task"}
    assert sample.task == "code"


def test_more_training_rows_than_there_are_functions_is_an_error_that_says_how_many_there_are() -> None:
    options = CodeBasicsOptions(kinds=("string",), max_steps=1, rows=500)
    with pytest.raises(
        DataError, match=r"500 rows are asked for, and these options allow only \d+ different"
    ) as caught:
        list(rows(options, split="train", seed=0))
    assert "Ask for fewer rows" in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"kinds": []}, "name one at least"),
        ({"forms": ["call", "call"]}, "without repeats"),
        ({"forms": ["file"]}, "stdin"),
        ({"min_steps": 4}, "min_steps = 4 is larger than max_steps = 3"),
        ({"tests": 1}, "greater than or equal to 2"),
        ({"difficulty": 3}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_make_no_sense_are_refused(setting: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        CodeBasicsOptions.model_validate(setting)

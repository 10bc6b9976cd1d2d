"""Which column has the right answer, and as what text."""

from __future__ import annotations

import pytest

from grpo_core.trial.reference import FORMS, Reference, answer_block, candidates, reference_text
from tests.core.trial.making import samples


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("42", "42"),
        (" ", None),
        ("", None),
        (None, None),
        (42, "42"),
        (0.5, "0.5"),
        (["print(1)", "print(2)"], "print(1)"),
        ([""], None),
        ([3, 4], "[3, 4]"),
        ('["print(1)", "print(2)"]', "print(1)"),
        ('["not json', '["not json'),
        ('["a", 1]', '["a", 1]'),
        ({"a": 1}, None),
    ],
)
def test_a_cell_is_an_answer_as_text(value: object, text: str | None) -> None:
    assert reference_text(value) == text


def test_a_reference_is_written_in_its_form() -> None:
    assert Reference(column="solution", form="in \\boxed{}").write("7") == "\\boxed{7}"
    assert Reference(column="solution", form="in <answer>").write("7") == "<answer>7</answer>"
    assert str(Reference(column="solution", form="bare")) == "column solution, bare"
    assert set(FORMS) == {"bare", "in \\boxed{}", "in <answer>", "in <answer>, after <think>", "in a python fence"}


def test_well_known_columns_are_candidates_and_those_the_reward_gets_come_first() -> None:
    rows = samples({"target": 7, "nums": [3, 4], "solution": "3+4"})
    assert candidates(["nums", "target"], ["nums", "target", "solution"], rows) == ("target", "solution")


def test_a_well_known_column_without_a_value_is_none() -> None:
    rows = samples({"solution": None, "city": "Lima"})
    assert candidates(["city"], ["solution", "city"], rows) == ("city",)


def test_without_well_known_names_short_texts_and_numbers_that_it_gets_are_meant() -> None:
    rows = samples({"city": "Lima", "map": [1], "essay": "x" * 201, "year": 1535, "other": "y"})
    assert candidates(["city", "map", "essay", "year"], rows[0].columns, rows) == ("city", "year")


def test_code_is_a_right_answer_where_it_is_a_program() -> None:
    rows = samples({"test_list": ["assert f(1)"], "code": "def f(x):\n    return x"})
    assert candidates(["test_list"], rows[0].columns, rows) == ("code",)
    rows = samples({"city": "Lima", "code": "PE"})
    assert candidates(["city"], rows[0].columns, rows) == ("city",)


BEGUN = "def f(x):\n    pass_it = x\n"


@pytest.mark.parametrize("prompt", [BEGUN, f"Complete this:\n```python\n{BEGUN}```\nAnswer in\n```python\n...\n```\n"])
def test_the_body_of_a_function_follows_what_the_prompt_begins(prompt: str) -> None:
    (row,) = samples({"canonical_solution": "    return x\n"}, question=prompt)
    reference = Reference(column="canonical_solution", form="in a python fence", continues=True)
    assert reference.of(row) == "def f(x):\n    pass_it = x\n    return x\n"
    assert str(reference) == "column canonical_solution after the prompt, in a python fence"


def test_what_follows_no_program_continues_nothing() -> None:
    (row,) = samples({"solution": "42"}, question="6*7?")
    assert Reference(column="solution", form="bare", continues=True).of(row) is None
    assert Reference(column="answer", form="bare", continues=True).of(row) is None


@pytest.mark.parametrize("bound", [[], ["task"], ["dataset", "task"]])
def test_a_reward_that_gets_nothing_of_the_row_cannot_know_the_answer(bound: list[str]) -> None:
    assert candidates(bound, ["solution", "task"], samples({"solution": "1", "task": "math"})) == ()


@pytest.mark.parametrize("text", ["<answer> 6 </answer>", "<think>2 * 3</think>\n\n<answer> 6 </answer>"])
def test_an_answer_that_has_its_tags_gets_no_second_ones(text: str) -> None:
    assert FORMS["in <answer>"](text) == "<answer> 6 </answer>"
    assert FORMS["in <answer>, after <think>"](text) == "<think></think>\n<answer> 6 </answer>"
    assert FORMS["bare"](text) == text
    assert answer_block("6") == "<answer>6</answer>"

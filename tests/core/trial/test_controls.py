"""Controls made of the data."""

from __future__ import annotations

from grpo_core.trial.controls import Rows, controls
from grpo_core.trial.reference import Reference
from tests.core.trial.making import answers

BARE = Reference(column="solution", form="bare")


def texts(rows: Rows, index: int = 0) -> dict[str, str | None]:
    return {control.name: control.write(index) for control in controls(rows)}


def judged(rows: Rows) -> dict[str, str]:
    return {control.name: control.judged for control in controls(rows)}


def test_the_right_answer_is_to_be_paid_in_its_best_form_alone() -> None:
    rows = Rows(answers(1, 2, 3), Reference(column="solution", form="in \\boxed{}"))
    assert texts(rows)["the reference, in \\boxed{}"] == "\\boxed{1}"
    kinds = judged(rows)
    assert kinds["the reference, in \\boxed{}"] == "pays"
    assert kinds["the reference, bare"] == "shown"
    assert {kinds[name] for name in kinds if not name.startswith("the reference, ")} == {"refuses"}


def test_anothers_answer_is_never_the_rows_own() -> None:
    rows = Rows(answers("a", "a", "b", "a"), BARE)
    assert [texts(rows, index)["another row's reference"] for index in range(4)] == ["b", "b", "a", "b"]


def test_the_right_answer_in_the_thinking_stands_beside_another_answer() -> None:
    for form, text in {
        "in \\boxed{}": "<think>\\boxed{1}</think>\n\\boxed{2}",
        "in <answer>, after <think>": "<think><answer>1</answer></think>\n<answer>2</answer>",
    }.items():
        rows = Rows(answers(1, 2), Reference(column="solution", form=form))
        assert texts(rows)["the reference in the thinking only"] == text


def test_where_all_answers_are_the_same_there_is_no_wrong_one() -> None:
    found = texts(Rows(answers("a", "a"), BARE))
    assert found["another row's reference"] is None
    assert found["all answers in one"] is None
    assert found["all answers, one by one"] is None


def test_a_row_without_an_answer_has_none_of_its_controls() -> None:
    found = texts(Rows(answers(None, 2, 3), BARE))
    assert found["the reference, bare"] is None
    assert found["all answers in one"] is None
    assert found["nothing"] == ""


def test_in_a_list_of_answers_the_right_one_is_neither_first_nor_last() -> None:
    three = Rows(answers(1, 2, 3), BARE)
    assert [texts(three, index)["all answers in one"] for index in range(3)] == ["2, 1, 3", "3, 2, 1", "1, 3, 2"]
    two = Rows(answers("yes", "no"), BARE)
    assert texts(two)["all answers in one"] == "no, yes, no"
    assert texts(two)["all answers, one by one"] == "no\nyes\nno"


def test_a_number_has_near_misses_and_a_text_has_none() -> None:
    found = texts(Rows(answers("42", "0.5", "yes"), Reference(column="solution", form="in \\boxed{}")))
    assert (found["a digit too many in front"], found["a digit too many behind"]) == ("\\boxed{142}", "\\boxed{421}")
    rows = Rows(answers("42", "0.5", "yes"), BARE)
    assert [texts(rows, index)["a digit too many behind"] for index in (1, 2)] == ["0.51", None]


def test_answers_of_several_lines_are_listed_below_each_other() -> None:
    assert texts(Rows(answers("a\nb", "c"), BARE))["all answers in one"] == "c\na\nb\nc"


SQUARE = "def square(x):\n    return x * x"
CUBE = "def cube(x):\n    return x ** 3"
SQUARE_TOO = "def square(x):\n    return x"
IN_A_FENCE = Reference(column="solution", form="in a python fence")


def test_programs_of_other_functions_are_no_wrong_answers_beside_the_right_one() -> None:
    found = texts(Rows(answers(SQUARE, CUBE), IN_A_FENCE))
    assert found["all answers in one"] is None
    assert found["all answers, one by one"] is None
    assert found["another row's reference"] == f"```python\n{CUBE}\n```"
    found = texts(Rows(answers(SQUARE, CUBE, SQUARE_TOO), IN_A_FENCE))
    assert found["all answers in one"] == f"```python\n{SQUARE_TOO}\n{SQUARE}\n{SQUARE_TOO}\n```"


def test_a_program_has_a_near_miss_that_is_shown_and_not_judged() -> None:
    rows = Rows(answers(SQUARE, "import os"), IN_A_FENCE)
    name = "one thing changed in the program"
    assert texts(rows)[name] == "```python\ndef square(x):\n    return x + x\n```"
    assert texts(rows, 1)[name] is None
    assert judged(rows)[name] == "shown"
    assert name not in judged(Rows(answers(1, 2), BARE))


def test_without_a_known_answer_there_are_no_controls_about_it() -> None:
    assert not any("reference" in name or "answers" in name for name in judged(Rows(answers(1))))


def test_a_reward_that_knows_nothing_of_the_row_is_shown_and_not_judged() -> None:
    assert set(judged(Rows(answers(1), None, knows=False)).values()) == {"shown"}


def test_junk_is_long_the_same_each_time_and_for_a_few_rows() -> None:
    rows = Rows(answers(*range(9)), Reference(column="solution", form="in <answer>"))
    junk = texts(rows)["long junk"]
    assert junk is not None
    assert len(junk) > 50_000
    assert junk.endswith("</answer>")
    assert texts(rows)["long junk"] == junk
    assert texts(rows, 8)["long junk"] is None


def test_the_prompt_is_all_of_its_turns() -> None:
    assert texts(Rows(answers(1)))["the prompt"] == "6*7?"

"""Reading recorded completions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from grpo_core.report.answers import Answer, Samples, clipped, groups_of, read_answers
from grpo_core.report.run import StepFile
from tests.core.report.making import answer_row, lines


def read(tmp_path: Path, *rows: dict[str, Any]) -> tuple[list[Answer], list[str]]:
    path = tmp_path / "completions" / "step-000004.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text(lines(rows), encoding="utf-8")
    notes: list[str] = []
    return list(read_answers(StepFile(step=4, path=path), notes)), notes


def test_a_line_becomes_an_answer_with_columns_and_records_as_text(tmp_path: Path) -> None:
    row = answer_row(
        4, finish_reason="length", columns={"solution": [1, "é"], "x": None}, records={"parsed": float("nan")}
    )
    (answer,), notes = read(tmp_path, row)
    assert notes == []
    assert (answer.step, answer.truncated, answer.tokens, answer.total, answer.advantage) == (4, True, 9, 1.5, 0.5)
    assert answer.columns == {"solution": '[1, "é"]'}
    assert answer.records == {"parsed": "NaN"}


def test_a_failed_score_keeps_its_reason_and_a_number_that_is_none_is_no_number(tmp_path: Path) -> None:
    row = answer_row(scores={"r": None}, failures={"r": "it broke"}, total=None, advantage=float("inf"))
    (answer,), _ = read(tmp_path, row)
    assert (answer.scores, answer.failures, answer.total, answer.advantage) == (
        {"r": None},
        {"r": "it broke"},
        None,
        None,
    )


def test_lines_that_are_no_completions_are_counted(tmp_path: Path) -> None:
    answers, notes = read(tmp_path, {"step": 4}, answer_row(scores=3), answer_row(tokens="many"), answer_row())
    assert len(answers) == 1
    assert notes == ["completions/step-000004.jsonl: 3 lines lack what a completion has, and were left out"]


def test_a_group_begins_with_member_0_even_of_the_same_sample(tmp_path: Path) -> None:
    answers, _ = read(tmp_path, *(answer_row(member=member) for member in (0, 1, 0, 1, 2)))
    assert [len(group) for group in groups_of(answers)] == [2, 3]


def test_a_prompt_is_kept_once(tmp_path: Path) -> None:
    answers, _ = read(tmp_path, answer_row(), answer_row(member=1), answer_row(prompt="another"))
    samples = Samples()
    assert [samples.place(answer) for answer in answers] == [0, 0, 1]
    assert [row["prompt"] for row in samples.rows] == ["3 + 4 = ?", "another"]


@given(st.text(max_size=200), st.integers(1, 60))
def test_a_long_text_says_how_much_of_it_is_left_out(part: str, times: int) -> None:
    text = part * times
    short = clipped(text)
    if len(text) <= 6000:
        assert short == text
    else:
        assert short.startswith(text[:4000])
        assert short.endswith(text[-2000:])
        assert f"{len(text) - 6000:,} characters are left out" in short

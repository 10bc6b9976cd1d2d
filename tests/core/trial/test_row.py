"""Rows as people type them."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.errors import DataError, UsageError
from grpo_core.trial.row import make_sample, read_row


def test_a_row_is_json_a_file_and_single_columns_and_the_last_wins(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"solution": 1, "level": "easy"}\n{"solution": 2}\n', encoding="utf-8")
    assert read_row([str(file), '{"solution": 3, "x": null}', "nums=[3, 4]", '"a.b"= text ']) == {
        "solution": 3,
        "level": "easy",
        "x": None,
        "nums": [3, 4],
        "a.b": "text",
    }


def test_values_are_numbers_texts_and_lists_as_they_read() -> None:
    assert read_row(["a=7", 'b="7"', "c=1/2", "d=true", "e="]) == {"a": 7, "b": "7", "c": "1/2", "d": True, "e": None}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1', "is no JSON object"),
        ('{"a": 1, "a": 2}', 'the key "a" is there twice'),
        ("rows.jsonl", "neither JSON, nor column=value, nor a file that there is"),
        ("a=[1", "is no YAML"),
        ("x" * 80, "xxx..."),
    ],
)
def test_what_is_no_row_is_said(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_row([text])
    assert words in caught.value.message
    assert caught.value.message.startswith("--row ")


def test_a_file_that_is_no_data_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("nonsense\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"rows.jsonl line 1: is not valid JSON"):
        read_row([str(file)])


def test_a_row_with_a_prompt_is_read_as_a_datasets() -> None:
    sample = make_sample({"query": "6*7?", "solution": 42})
    assert [message.content for message in sample.messages] == ["6*7?"]
    assert sample.columns == {"solution": 42}


def test_a_row_without_a_prompt_is_all_columns() -> None:
    sample = make_sample({"solution": 42})
    assert (sample.messages[-1].content, sample.columns) == ("", {"solution": 42})


@pytest.mark.parametrize("row", [{"step": 3}, {"query": "?", "step": 3}])
def test_a_reserved_name_is_no_column(row: dict[str, object]) -> None:
    with pytest.raises(DataError, match="column step: the name is reserved"):
        make_sample(row)

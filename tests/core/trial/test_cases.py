"""Files of cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grpo_core.errors import DataError
from grpo_core.trial.cases import read_cases, shipped_cases
from grpo_core.types import FinishReason
from tests.core.trial.making import REWARDS


def write(folder: Path, *rows: object) -> Path:
    file = folder / "cases.jsonl"
    file.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return file


def test_a_case_has_defaults_for_all_but_completion_and_expected(tmp_path: Path) -> None:
    (case,) = read_cases(write(tmp_path, {"completion": "a", "expected": 1}))
    assert (case.texts, case.expected, case.columns, case.options) == (("a",), (1.0,), {}, {})
    assert (case.place, case.prompt, case.completion_ids) == ("cases.jsonl line 1", "", None)
    assert case.finish_reason is FinishReason.STOP


def test_a_case_may_be_a_group_or_a_conversation(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "b"}, {"type": "image"}]
    group, same, chat = read_cases(
        write(
            tmp_path,
            {"completion": ["a", "b", "c"], "expected": [1, None, "failed"], "completion_ids": [[1], [2], []]},
            {"completion": ["a", "b"], "expected": None},
            {
                "completion": [{"role": "assistant", "content": "a"}, {"content": parts}, {"content": None}],
                "expected": 0,
            },
        )
    )
    assert group.expected == (1.0, None, "failed")
    assert group.completion_ids == ((1,), (2,), ())
    assert same.expected == (None, None)
    assert chat.texts == ("ab",)


def test_everything_a_case_can_say_is_read(tmp_path: Path) -> None:
    row = {
        "completion": "a",
        "expected": 0.25,
        "columns": {"solution": [1, "x"]},
        "prompt": "user: <think>",
        "completion_ids": [4, 5],
        "finish_reason": "length",
        "options": {"ngram_size": 2},
        "tolerance": 0.1,
        "name": "quarter",
        "why": "because",
    }
    (case,) = read_cases(write(tmp_path, row))
    assert (case.columns, case.prompt, case.completion_ids) == ({"solution": [1, "x"]}, "user: <think>", ((4, 5),))
    assert (case.finish_reason, case.options) == (FinishReason.LENGTH, {"ngram_size": 2})
    assert (case.tolerance, case.name, case.why) == (0.1, "quarter", "because")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("{", "line 2: is not valid JSON"),
        ("[1]", "line 2: a row is a JSON object"),
        ({"completion": "a"}, "line 2: a case needs 'expected'"),
        ({"expected": 1}, "line 2: a case needs 'completion'"),
        ({"completion": "a", "expectd": 1}, "line 2: unknown key 'expectd'"),
        ({"completion": 3, "expected": 1}, "'completion' is 3, neither a text"),
        ({"completion": [], "expected": 1}, "'completion' is [], neither a text"),
        ({"completion": ["a", 1], "expected": 1}, "neither a text"),
        ({"completion": [{"content": 3}], "expected": 1}, "the content of a message is 3, not a text"),
        ({"completion": "a", "expected": "1"}, "'expected' is '1', not a score"),
        ({"completion": "a", "expected": True}, "'expected' is True, not a score"),
        ({"completion": ["a", "b"], "expected": [1]}, "'expected' has 1 scores for 2 completions"),
        ({"completion": "a", "expected": 1, "columns": []}, "'columns' is [], not an object with names"),
        ({"completion": "a", "expected": 1, "columns": {"prompts": "x"}}, "'columns' has 'prompts', a name that means"),
        ({"completion": "a", "expected": 1, "columns": {"step": 1}}, "'columns' has 'step', a name that means"),
        ({"completion": "a", "expected": 1, "options": 3}, "'options' is 3, not an object with names"),
        ({"completion": "a", "expected": 1, "completion_ids": "x"}, "'completion_ids' is 'x', not a list of whole"),
        ({"completion": "a", "expected": 1, "completion_ids": [1.5]}, "not a list of whole numbers"),
        ({"completion": "a", "expected": 1, "completion_ids": [[1], [2]]}, "are of 2 completions, and there are 1"),
        ({"completion": "a", "expected": 1, "finish_reason": "eos"}, "'finish_reason' is 'eos'; it is one of stop"),
        ({"completion": "a", "expected": 1, "tolerance": -1}, "'tolerance' is -1, not a number of at least 0"),
        ({"completion": "a", "expected": 1, "why": 3}, "'why' is 3, not a text"),
        ({"completion": "a", "expected": 1, "name": "x" * 99, "why": ["x" * 99]}, "...', not a text"),
    ],
)
def test_what_is_no_case_is_an_error_with_its_line(tmp_path: Path, row: object, words: str) -> None:
    file = write(tmp_path, {"completion": "a", "expected": 1}, row)
    with pytest.raises(DataError) as caught:
        read_cases(file)
    assert words.replace("...', not", "..., not") in caught.value.message
    assert "cases.jsonl line 2" in caught.value.message


def test_a_misspelt_key_is_told_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_cases(write(tmp_path, {"completion": "a", "expectd": 1}))
    assert "Did you mean 'expected'?" in str(caught.value)
    with pytest.raises(DataError) as caught:
        read_cases(write(tmp_path, {"completion": "a", "expected": 1, "solution": "x"}))
    assert "What the dataset has belongs under 'columns'." in str(caught.value)


def test_an_empty_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no rows"):
        read_cases(write(tmp_path))


def test_cases_are_found_in_the_package_or_beside_the_file_without_an_import(tmp_path: Path) -> None:
    found = shipped_cases("grpo_core.reward.builtin.think_answer:format_reward", "format_reward")
    assert found is not None
    assert found.parts[-3:] == ("grpo_core", "cases", "format_reward.jsonl")
    assert shipped_cases("grpo_core.reward.builtin.think_answer:format_reward", "other") is None
    assert shipped_cases("no_such_package.mod:f", "f") is None
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "near.jsonl").write_text("", encoding="utf-8")
    assert shipped_cases(f"{tmp_path}/mine.py:near", "near") == tmp_path / "cases" / "near.jsonl"
    assert shipped_cases(f"{REWARDS}:exact", "exact") is None

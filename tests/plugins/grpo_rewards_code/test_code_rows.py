"""Rows of the well-known programming datasets, from a file to prompts, with and without the preprocessor `code`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grpo_core.api import BuildContext, DataError
from grpo_rewards_code.rows.options import CodeRowsOptions
from grpo_rewards_code.rows.prompt import make
from tests.integration.runs import grpoctl

APPS = {"question": "Add two numbers.", "input_output": '{"inputs": ["1 2"], "outputs": ["3"]}', "solutions": "[]"}
CALL = {"question": "Double it.", "input_output": '{"fn_name": "double", "inputs": [[1]], "outputs": [2]}'}
LIVE_CODE_BENCH = {
    "question_title": "Twice",
    "question_content": "Double the list.",
    "starter_code": "class Solution:\n    def twice(self, xs: List[int]) -> List[int]:\n        ",
    "public_test_cases": '[{"input": "[1]", "output": "[2]", "testtype": "functional"}]',
    "private_test_cases": "[]",
    "metadata": '{"func_name": "twice"}',
}
OPEN_R1 = {
    "problem": "Add.",
    "verification_info": {"language": "python", "test_cases": [{"input": "1", "output": "2"}]},
}
KODCODE = {
    "question": "Count vowels.",
    "test": "from solution import count\ndef test_a():\n    assert count('a') == 1\n",
}
MBPP = {"text": "Square a number.", "test_list": ["assert square(2) == 4"], "test_setup_code": ""}
HUMAN_EVAL = {
    "prompt": 'def one():\n    """Give 1."""\n',
    "test": "def check(candidate):\n    assert candidate() == 1\n",
    "entry_point": "one",
}
CODE_CONTESTS = {"description": "Add.", "tests": {"input": ["1 2"], "output": ["3"]}}

to_sample = make(CodeRowsOptions(), BuildContext())


@pytest.mark.parametrize(
    ("row", "parts"),
    [
        (APPS, ["Add two numbers.", "reads from standard input"]),
        (CALL, ["Double it.", "a Python function `double`."]),
        (LIVE_CODE_BENCH, ["Double the list.", "Complete this Python code:\n```python\nclass Solution:"]),
        (OPEN_R1, ["Add.", "reads from standard input"]),
        (KODCODE, ["Count vowels.", "a Python function `count`."]),
        (MBPP, ["Square a number.", "a Python function `square`."]),
        (HUMAN_EVAL, ['Complete this Python code:\n```python\ndef one():\n    """Give 1."""\n```']),
        (CODE_CONTESTS, ["Add.", "reads from standard input"]),
    ],
)
def test_the_prompt_says_what_is_to_be_written_and_the_tests_stay_columns(
    row: dict[str, Any], parts: list[str]
) -> None:
    sample = to_sample(row)
    assert sample is not None
    [message] = sample.messages
    assert all(part in message.content for part in [*parts, "<think></think>", "<answer>\n```python"])
    assert sample.columns["task"] == "code"
    assert {name: row[name] for name in sample.columns if name != "task"} == {
        name: value for name, value in row.items() if name in sample.columns
    }
    assert len(sample.columns) == len(row)


def test_no_answer_of_a_test_stands_in_the_prompt() -> None:
    sample = to_sample({"text": "Square.", "test_list": ["assert square(2) == 40404"]})
    assert sample is not None
    assert "40404" not in sample.messages[0].content


def test_wording_can_be_a_block_alone_or_nothing() -> None:
    block = make(CodeRowsOptions(wording="block"), BuildContext())(APPS)
    nothing = make(CodeRowsOptions(wording="none"), BuildContext())({**APPS, "system": "Be brief.", "task": "mine"})
    assert block is not None
    assert nothing is not None
    assert block.messages[0].content.endswith("as a Python block:\n```python\n…\n```")
    assert [message.content for message in nothing.messages] == ["Be brief.", "Add two numbers."]
    assert nothing.columns["task"] == "mine"


def test_tests_that_cannot_be_read_do_not_stop_the_prompt() -> None:
    sample = to_sample({"question": "Add.", "input_output": "{"})
    assert sample is not None
    assert "reads from standard input" in sample.messages[0].content


def test_a_row_without_a_problem_is_refused() -> None:
    with pytest.raises(DataError, match="no column has the problem; the columns are input_output"):
        to_sample({"input_output": "{}"})


def preview(folder: Path, reference: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(grpoctl(folder, "datasets", "preview", reference, "--json").stdout)
    return facts


@pytest.mark.parametrize(
    "row", [APPS, CALL, LIVE_CODE_BENCH, OPEN_R1, KODCODE], ids=["apps", "call", "lcb", "open-r1", "kodcode"]
)
def test_a_file_of_any_form_works_at_once_and_with_the_wording_of_the_dataset(
    row: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    at_once, worded = preview(tmp_path, "rows.jsonl"), preview(tmp_path, "code?path=./rows.jsonl")
    question = next(row[name] for name in ("question", "question_content", "problem") if name in row)
    assert [sample["messages"][-1]["content"] for sample in at_once["samples"]] == [question]
    assert question in worded["samples"][0]["messages"][-1]["content"]
    assert set(worded["columns"]) == set(at_once["columns"]) | {"task"}

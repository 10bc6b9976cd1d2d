"""Rows of programming datasets -> samples: the problem with what is to be written, and every column for the reward.

Understands the columns of APPS, TACO, LiveCodeBench, open-r1, KodCode, MBPP, HumanEval and CodeContests. The tests stay
columns as they are: `code_reward` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping

from grpo_core.api import BuildContext, DataError, Message, Preprocessor, Sample
from grpo_rewards_code.problem.row import read_problem
from grpo_rewards_code.problem.types import TestsError
from grpo_rewards_code.rows.options import CodeRowsOptions

__all__ = ["make"]

TASK = "code"
_QUESTION_COLUMNS = ("question_content", "question", "problem", "prompt", "description", "text")
_PACKED = "private_test_cases"
_SCRIPT = "Write a Python program that reads from standard input and prints the answer."
_FUNCTION = "Write a Python function `{name}`."
_COMPLETE = "Complete this Python code:\n```python\n{code}\n```"
_ANSWER = {
    "tags": "First reason inside <think></think>. Then write the program, and nothing else, inside <answer></answer>, "
    "as a Python block:\n<answer>\n```python\n…\n```\n</answer>",
    "block": "Answer with the program as a Python block:\n```python\n…\n```",
}


def make(options: CodeRowsOptions, context: BuildContext) -> Preprocessor:
    """Build the preprocessor of the dataset `code`."""

    def to_sample(row: Mapping[str, object], /) -> Sample:
        columns = dict(row)
        column, question = _question(columns)
        del columns[column]
        columns["task"] = columns.get("task") or TASK
        system = columns.pop("system", None)
        opening = [Message(role="system", content=str(system))] if system else []
        text = question.strip() if options.wording == "none" else _worded(question, column, row, options)
        return Sample(messages=(*opening, Message(role="user", content=text)), columns=columns)

    return to_sample


def _question(row: Mapping[str, object]) -> tuple[str, str]:
    for column in _QUESTION_COLUMNS:
        text = row.get(column)
        if isinstance(text, str) and text.strip():
            return column, text
    raise DataError(
        f"no column has the problem; the columns are {', '.join(sorted(row)) or 'none'}",
        hint="Say which one it is: --columns text=question.",
    )


def _worded(question: str, column: str, row: Mapping[str, object], options: CodeRowsOptions) -> str:
    starter = row.get("starter_code")
    if column == "prompt" and row.get("entry_point"):  # HumanEval: the problem is the beginning of the code
        parts = [_COMPLETE.format(code=question.strip())]
    elif isinstance(starter, str) and starter.strip():
        parts = [question.strip(), _COMPLETE.format(code=starter.strip())]
    else:
        name = _function(row)
        parts = [question.strip(), _FUNCTION.format(name=name) if name else _SCRIPT]
    return "\n\n".join([*parts, _ANSWER[options.wording]])


def _function(row: Mapping[str, object]) -> str | None:
    """The one function that the tests call. Packed tests are not opened for it: they are of scripts, or come with
    starter code; and tests that cannot be read are the reward's to report."""
    if row.get(_PACKED):
        return None
    try:
        names = sorted(read_problem(row).names - {"Solution"})
    except TestsError:
        return None
    return "` and `".join(names) or None

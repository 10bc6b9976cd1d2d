"""`grpoctl rewards test`: cases with the scores that are expected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grpo_core.errors import DataError, GrpoError, UsageError
from tests.core.cli.rewards.running import error, facts, rewards
from tests.core.trial.making import REWARDS


def test_test_counts_what_is_as_expected_and_shows_the_rest(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    rows = [
        {"completion": "<answer>6</answer>", "columns": {"solution": 6}, "expected": 1},
        {
            "completion": ["6", "<answer>6</answer>"],
            "columns": {"solution": 6},
            "expected": [1, None],
            "why": "[b]no[/b]",
        },
        {"completion": "7", "columns": {"solution": 6}, "expected": "failed", "name": "seven"},
    ]
    cases.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    lines = rewards("test", f"{REWARDS}:exact", "--cases", str(cases), code=4).stdout.splitlines()
    assert [line.split()[:5] for line in lines[:2]] == [
        ["case", "expected", "score", "completion", "why"],
        ["cases.jsonl", "line", "2", "[0]", "1"],
    ]
    assert "[b]no[/b]" in lines[1]
    assert "does not apply" in lines[2]
    assert lines[3].split()[:3] == ["seven", "failed", "0"]
    assert lines[4] == f"1 of 4 as expected  {cases}"
    found = facts("test", f"{REWARDS}:exact", "--cases", str(cases), code=4)
    assert (found["passed"], found["failed"], found["cases"]) == (1, 3, str(cases))
    assert found["failures"][2] == {
        "place": "cases.jsonl line 3",
        "name": "seven",
        "completion": "7",
        "expected": "failed",
        "score": 0.0,
        "failure": None,
        "why": "",
    }


def test_test_takes_the_cases_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def short(completions):\n    return [float(len(t) < 3) for t in completions]\n")
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "short.jsonl").write_text('{"completion": "ab", "expected": 1}\n', encoding="utf-8")
    assert rewards("test", f"{tmp_path}/mine.py:short").stdout.startswith("1 of 1 as expected")


def test_test_puts_a_cases_options_over_those_of_the_command(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    rows = [{"completion": "x", "completion_ids": [1, 2, 1, 2], "expected": -1 / 3}]
    rows.append({**rows[0], "options": {"ngram_size": 3}, "expected": 0})
    cases.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    more = ("--cases", str(cases), "--set", "rewards.repetition.options.ngram_size=2")
    assert rewards("test", "repetition", *more).stdout.startswith("2 of 2 as expected")


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (["test", f"{REWARDS}:exact"], UsageError, "ships no cases"),
        (["test", "format", "--cases", "/no/cases.jsonl"], DataError, "there is no such file"),
    ],
)
def test_what_test_cannot_do_is_said(arguments: list[str], kind: type[GrpoError], words: str) -> None:
    assert words in error(kind, *arguments)

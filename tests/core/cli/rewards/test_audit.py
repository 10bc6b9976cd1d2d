"""`grpoctl rewards audit`: what a reward pays for, by controls made of the rows of a dataset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grpo_core.errors import DataError, GrpoError, UsageError
from tests.core.cli.rewards.running import error, facts, rewards
from tests.core.trial.making import REWARDS


def test_audit_shows_what_a_reward_pays_for(rows: str) -> None:
    lines = rewards("audit", f"{REWARDS}:boxed", "--dataset", rows).stdout.splitlines()
    assert lines[:2] == ["boxed: 8 of 8 rows", "the right answer: column solution, in \\boxed{}"]
    table = {line[:34].strip(): line[34:].split() for line in lines if line.startswith(("the reference,", "nothing"))}
    assert table["the reference, in \\boxed{}"] == ["be", "paid", "1.000", "8", "0", "0", "ok"]
    assert table["nothing"] == ["not", "be", "paid", "0.000", "8", "0", "0", "ok"]
    assert any(line.startswith("off the main thread") and line.endswith("ok") for line in lines)
    assert lines[-1] == "every control is as it should"


def test_audit_names_a_control_that_fails_with_an_example(rows: str) -> None:
    more = ("--dataset", rows, "--rows", "3")
    lines = rewards("audit", f"{REWARDS}:contains", *more, code=4).stdout.splitlines()
    assert "all answers in one: it is no answer and scores 1, more than 0.1" in lines
    assert '  train-000000 "18, 6, 36" scores 1' in lines
    assert lines[-1] == "5 controls fail"
    found = facts("audit", f"{REWARDS}:contains", *more, code=4)
    assert found["problems"] == 5
    assert found["reference"] == {"column": "solution", "form": "bare"}
    assert found["rows"] == 3
    wrong = next(each for each in found["controls"] if each["name"] == "all answers in one")
    assert wrong["example"] == {
        "sample_id": "train-000000",
        "completion": "18, 6, 36",
        "score": 1.0,
        "failure": None,
        "note": "",
    }


def test_audit_shows_a_program_with_its_lines_and_their_indentation(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    programs = [f"def {name}(x):\n    return '\x1b' + x" for name in ("f", "g")]
    rows = [json.dumps({"query": "?", "solution": program}) for program in programs]
    file.write_text("\n".join(rows), encoding="utf-8")
    lines = rewards("audit", f"{REWARDS}:mentions_def", "--dataset", str(file), code=4).stdout.splitlines()
    place = lines.index("another row's reference: it is no answer and scores 1, more than 0.1")
    assert lines[place + 1 : place + 4] == [
        "  train-000000 scores 1:",
        "    | def g(x):",
        "    |     return '\\x1b' + x",
    ]
    found = facts("audit", f"{REWARDS}:mentions_def", "--dataset", str(file), code=4)
    wrong = next(each for each in found["controls"] if each["name"] == "another row's reference")
    assert wrong["example"]["completion"] == programs[1]


def test_audit_puts_the_body_of_a_function_below_its_prompt(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    rows = [{"query": f"def {name}(x):", "solution": f"    return x + {place}"} for place, name in enumerate("fg")]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = facts("audit", f"{REWARDS}:mentions_def", "--dataset", str(file), code=4)["reference"]
    assert found == {"column": "solution", "form": "bare", "after_the_prompt": True}


def test_audit_marks_a_control_that_cannot_be_made_of_the_rows(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"query": "?", "solution": "yes"}\n' * 2, encoding="utf-8")
    lines = rewards("audit", f"{REWARDS}:boxed", "--dataset", str(file)).stdout.splitlines()
    unmade = [line for line in lines if line.endswith("not made")]
    assert [line.split("  ")[0] for line in unmade] == [
        "another row's reference",
        "the reference in the thinking only",
        "a digit too many in front",
        "a digit too many behind",
        "all answers in one",
        "all answers, one by one",
    ]


def test_audit_says_what_another_way_of_scoring_changes(rows: str) -> None:
    shown = rewards("audit", f"{REWARDS}:counts_calls", "--dataset", rows, "--high", "0", "--low", "2", code=4).stdout
    assert "scored again: the same completion scores differently" in shown
    assert ", then " in shown
    assert "controls fail" in shown


def test_audit_does_not_judge_a_reward_that_knows_nothing_of_the_row(rows: str) -> None:
    shown = rewards("audit", "format_reward", "--dataset", f"{rows}#4").stdout
    assert "no controls about the right answer: it reads no column of the data" in shown
    assert "not be paid" not in shown


def test_audit_counts_rows_of_other_tasks_and_passes_warnings_on(tmp_path: Path, plugin: str) -> None:
    file = tmp_path / "rows.jsonl"
    lines = [
        json.dumps({"messages": [{"role": "user", "content": "?"}], "query": "x", "task": task, "solution": "yes"})
        for task in ("polls", "maths")
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    ran = rewards("audit", "agrees", "--plugin", plugin, "--dataset", str(file))
    assert "agrees: 1 of 2 rows, 1 of other tasks left out" in ran.stdout
    assert "warning: " in ran.stderr
    assert "the column query is not part of it" in ran.stderr


def test_audit_of_the_countdown_dataset_finds_the_column_that_the_reward_does_not_get() -> None:
    found = facts(
        "audit", "countdown_reward", "--dataset", "countdown", "--set", "dataset.options.rows=40", "--rows", "4"
    )
    assert found["reference"] == {"column": "solution", "form": "in <answer>"}
    assert found["problems"] == 0


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (["audit", "format", "--dataset", "/no/rows.jsonl"], DataError, "there is no such file"),
        (["audit", "format", "--dataset", "countdown,gsm"], UsageError, "2 datasets are named"),
    ],
)
def test_what_audit_cannot_do_is_said(arguments: list[str], kind: type[GrpoError], words: str) -> None:
    assert words in error(kind, *arguments)

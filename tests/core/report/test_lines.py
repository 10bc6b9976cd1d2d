"""JSON lines as a kill leaves them."""

from __future__ import annotations

import os
from pathlib import Path

from grpo_core.report.lines import read_lines


def read(path: Path, content: bytes) -> tuple[list[object], list[str]]:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    notes: list[str] = []
    return list(read_lines(path, notes)), notes


def test_half_a_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    rows, notes = read(tmp_path / "metrics.jsonl", b'{"step": 1}\n{"step": 2, "rew')
    assert rows == [{"step": 1}]
    assert notes == ["metrics.jsonl: line 2, the last, is only half written and was left out"]


def test_a_broken_line_in_the_middle_costs_that_line_only(tmp_path: Path) -> None:
    rows, notes = read(tmp_path / "completions" / "step-000003.jsonl", b'{"a": 1}\nnonsense\n[1]\n\xff\n{"a": 2}\n')
    assert rows == [{"a": 1}, {"a": 2}]
    assert notes == [
        "completions/step-000003.jsonl: line 2 is not JSON and was left out",
        "completions/step-000003.jsonl: line 3 is no JSON object and was left out",
        "completions/step-000003.jsonl: line 4 is not JSON and was left out",
    ]


def test_a_line_separator_inside_a_completion_ends_no_line(tmp_path: Path) -> None:
    rows, notes = read(tmp_path / "metrics.jsonl", '{"text": "a\u2028b\u0085c"}\n'.encode())
    assert (rows, notes) == ([{"text": "a\u2028b\u0085c"}], [])


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "metrics.jsonl")
    notes: list[str] = []
    assert list(read_lines(tmp_path / "metrics.jsonl", notes)) == []
    assert notes == ["metrics.jsonl cannot be read: it is a FIFO, not a file"]

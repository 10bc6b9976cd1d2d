"""Broken files given to commands: an answer or an error for people, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz.mutations import mutated
from tests.integration.runs import grpoctl
from tests.vl_models import encoded_picture

ROWS = [
    {"query": "6*7?", "solution": "42", "system": "Be brief.", "history": [["1+1?", "2"]]},
    {"messages": [{"role": "user", "content": "6*8?"}, {"role": "assistant", "content": "48"}], "images": ["a.png"]},
    {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "What?"}, {"type": "image", "path": "b.png"}]}
        ]
    },
    {"conversations": [{"from": "human", "value": "6*9?"}], "level": 1.5, "tags": ["a", None]},
    {"instruction": "Add.", "input": "1 and 2", "answer": {"value": 3}},
]
WORDS = (b'"role"', b'"content"', b"null", b"[]", b"{}", b'"user"', b'"step"', b'"prompts"', b"-1", b'""', b"<image>")
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
PICTURE = encoded_picture(1)
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def check_preview(folder: Path, data: bytes) -> None:
    (folder / "rows.jsonl").write_bytes(data)
    for name in ("a.png", "b.png"):
        (folder / name).write_bytes(PICTURE)
    done = grpoctl(folder, "datasets", "preview", "rows.jsonl", "--json", code=None)
    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert "fault in the program" not in done.stderr
    if done.returncode == 0:
        shown = json.loads(done.stdout)
        assert shown["rows"] == len([line for line in data.decode().split("\n") if line.strip()])
    else:
        assert done.stderr.startswith("error: ")


def test_the_sound_file_is_previewed(tmp_path: Path) -> None:
    check_preview(tmp_path, LINES)
    assert grpoctl(tmp_path, "datasets", "preview", "rows.jsonl").returncode == 0


@given(data=mutated(LINES, extra=WORDS))
@settings(max_examples=40, deadline=None, suppress_health_check=SHARED)
def test_a_preview_of_a_broken_file_is_an_answer_or_an_error(tmp_path: Path, data: bytes) -> None:
    check_preview(tmp_path, data)


@pytest.mark.slow
@given(data=mutated(LINES, extra=WORDS))
@settings(max_examples=1000, deadline=None, suppress_health_check=SHARED)
def test_a_preview_of_a_broken_file_is_an_answer_or_an_error_thoroughly(tmp_path: Path, data: bytes) -> None:
    check_preview(tmp_path, data)

"""Commas that separate references, and commas of paths."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.recipe.commas import split_references


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a,b.jsonl", "x,y,z.py", "plain.jsonl", "b.jsonl"):
        (tmp_path / name).touch()
    (tmp_path / "in, here").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("countdown, math", ["countdown", "math"]),
        ("a,b.jsonl", ["a,b.jsonl"]),
        ("./a,b.jsonl?split=train#20", ["./a,b.jsonl?split=train#20"]),
        ("a,b.jsonl#20,c", ["a,b.jsonl#20", "c"]),
        ("plain.jsonl,a,b.jsonl,countdown", ["plain.jsonl", "a,b.jsonl", "countdown"]),
        ("x,y,z.py:near,format_reward", ["x,y,z.py:near", "format_reward"]),
        ("in, here", ["in, here"]),
        ("a,c.jsonl", ["a", "c.jsonl"]),
        ("plain.jsonl,b.jsonl", ["plain.jsonl", "b.jsonl"]),
        ("a,,b", ["a", "", "b"]),
        ("a\0,b", ["a\0", "b"]),
    ],
)
def test_a_comma_separates_unless_it_stands_in_a_path_that_exists(text: str, expected: list[str], here: Path) -> None:
    assert split_references(text) == expected


@given(st.text(alphabet="ab,. #?:/", max_size=30))
def test_no_sign_of_the_text_is_lost(text: str) -> None:
    assert ",".join(split_references(text)).replace(" ", "") == text.replace(" ", "")

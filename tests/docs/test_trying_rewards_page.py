"""The examples of docs/trying-rewards.md are run as they stand there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from grpo_core.trial.cases import CASE_KEYS
from tests.integration.runs import grpoctl

PAGE = (Path(__file__).parents[2] / "docs" / "trying-rewards.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the page."""
    (tmp_path / "cases").mkdir()
    rows, cases = blocks("json")
    (tmp_path / "mine.py").write_text(blocks("python")[0], encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text(rows, encoding="utf-8")
    (tmp_path / "cases" / "near.jsonl").write_text(cases, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("part", "code"), [("rewards try", 0), ("rewards test", 4)])
def test_a_command_prints_what_the_page_says(folder: Path, part: str, code: int) -> None:
    command, *lines = next(block for block in blocks("console") if f"$ grpoctl {part}" in block).splitlines()
    said = grpoctl(folder, *shlex.split(command)[2:], code=code).stdout.replace(str(folder), "/home/anna").splitlines()
    assert _timeless(said) == _timeless(lines)


def test_the_audit_finds_what_the_page_says(folder: Path) -> None:
    command = next(block for block in blocks("console") if "$ grpoctl rewards audit" in block)
    said = grpoctl(folder, *shlex.split(command)[2:], code=4).stdout
    assert said.endswith(blocks("text")[0])


def test_every_key_of_a_case_is_on_the_page() -> None:
    keys = re.findall(r"^\| (`.*?`) \|", PAGE, flags=re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(keys))) == set(CASE_KEYS)


def _timeless(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith("  time ")]

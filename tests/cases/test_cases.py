"""Every case whose part exists has its right outcome, and the runner says what it found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.__main__ import main
from tests.cases.bank import BANK, judge, read_cases

CASES = read_cases(BANK)
BUILT_AREAS = {"code", "countdown", "data", "format", "math", "multireward", "vision"}
NOT_YET = {"judge outputs"}
"""Parts that the built areas' cases still wait for. A part that comes into being leaves this list."""


@pytest.mark.parametrize("case", [case for case in CASES if case["area"] in BUILT_AREAS], ids=lambda case: case["id"])
def test_the_outcome_is_right(case: dict[str, Any]) -> None:
    verdict = judge(case)
    assert verdict.status != "failed", f"{verdict.message}\n{case['why']}"
    assert verdict.status == "passed" or verdict.message in NOT_YET


def test_an_area_that_is_not_built_is_named_as_such() -> None:
    assert judge({**CASES[0], "area": "tomorrow"}).message == "the area tomorrow"


@pytest.fixture
def three_cases(tmp_path: Path) -> Path:
    """One right, one wrong, one of a part that does not exist."""
    right = {"id": "t-1", "area": "format", "fault": "f", "reward": "format_reward", "completion": "", "expected": 0.0}
    wrong = {**right, "id": "t-2", "expected": 1.0}
    later = {**right, "id": "t-3", "reward": "reward_of_tomorrow"}
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join(map(json.dumps, (right, wrong, later))) + "\n", encoding="utf-8")
    return file


def test_the_runner_names_failing_cases_and_counts_the_rest(
    three_cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(three_cases), "--json", str(three_cases.with_suffix(".out"))]) == 1
    first, *table = capsys.readouterr().out.splitlines()
    assert first == "t-2 (format, f): expected 1.0, got 0.0"
    assert [line.split() for line in table[1:3]] == [["format", "1", "1", "1"], ["all", "1", "1", "1"]]
    assert table[3] == "not yet: reward_of_tomorrow (1)"
    verdicts = json.loads(three_cases.with_suffix(".out").read_text(encoding="utf-8"))
    assert [verdict["status"] for verdict in verdicts] == ["passed", "failed", "not yet"]


def test_the_runner_ends_well_when_no_case_failed(three_cases: Path) -> None:
    assert main([str(three_cases), "--area", "countdown"]) == 0


def test_a_case_that_crashes_has_failed(three_cases: Path) -> None:
    verdict = judge({"id": "t-4", "area": "format"})
    assert (verdict.status, verdict.message) == ("failed", "crash: KeyError: 'completion'")

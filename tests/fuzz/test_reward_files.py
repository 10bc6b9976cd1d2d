"""Broken files of cases and of recorded completions: an answer or an error for people, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.core.trial.making import REWARDS
from tests.core.trial.stored_run import make_run
from tests.fuzz.mutations import mutated
from tests.integration.runs import grpoctl

CASES = [
    {"completion": "<answer>1</answer>", "columns": {"solution": 1}, "expected": 1.0, "why": "half \ud83d of one"},
    {"completion": ["a", "b"], "expected": [None, "failed"], "tolerance": 0.5, "finish_reason": "length"},
    {"completion": [{"role": "assistant", "content": "a"}], "expected": 0, "completion_ids": [1, 2], "prompt": "p"},
]
LINES = "".join(json.dumps(case) + "\n" for case in CASES).encode()
WORDS = (
    b'"expected"',
    b'"failed"',
    b"null",
    b"[]",
    b"{}",
    b"-1",
    b'""',
    b'"step"',
    b'"options"',
    b"1e999",
    b'"\\ud800"',
)
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def check(folder: Path, *arguments: str) -> None:
    done = grpoctl(folder, "rewards", *arguments, code=None)
    assert done.returncode in (0, 2, 4), done.stderr
    assert "Traceback" not in done.stderr
    assert "fault in the program" not in done.stderr


def check_cases(folder: Path, data: bytes) -> None:
    (folder / "cases.jsonl").write_bytes(data)
    for more in ([], ["--json"]):
        check(folder, "test", f"{REWARDS}:exact", "--cases", "cases.jsonl", *more)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("stored"), steps=1)


def check_stored(run: Path, data: bytes) -> None:
    (run / "completions" / "step-000001.jsonl").write_bytes(data)
    check(run.parent, "rescore", "run", "--rewards", f"{REWARDS}:exact,{REWARDS}:length")


def test_the_sound_files_are_read(tmp_path: Path) -> None:
    check_cases(tmp_path, LINES)


@given(data=mutated(LINES, extra=WORDS))
@settings(max_examples=25, deadline=None, suppress_health_check=SHARED)
def test_a_broken_file_of_cases_is_an_answer_or_an_error(tmp_path: Path, data: bytes) -> None:
    check_cases(tmp_path, data)


STORED = json.dumps(
    {
        "sample_id": "train-000000",
        "member": 0,
        "prompt": "?",
        "completion": "<answer>1</answer>",
        "tokens": 2,
        "finish_reason": "stop",
        "scores": {"exact": 1.0},
        "failures": {},
        "total": 1.0,
        "columns": {"solution": 1},
    }
).encode()


@given(data=mutated(STORED + b"\n" + STORED.replace(b'"member": 0', b'"member": 1') + b"\n", extra=WORDS))
@settings(max_examples=25, deadline=None, suppress_health_check=SHARED)
def test_a_broken_record_is_an_answer_or_an_error(run: Path, data: bytes) -> None:
    check_stored(run, data)


@pytest.mark.slow
@given(data=mutated(LINES, extra=WORDS))
@settings(max_examples=400, deadline=None, suppress_health_check=SHARED)
def test_a_broken_file_of_cases_is_an_answer_or_an_error_thoroughly(tmp_path: Path, data: bytes) -> None:
    check_cases(tmp_path, data)


@pytest.mark.slow
@given(data=mutated(STORED + b"\n" + STORED.replace(b'"member": 0', b'"member": 1') + b"\n", extra=WORDS))
@settings(max_examples=400, deadline=None, suppress_health_check=SHARED)
def test_a_broken_record_is_an_answer_or_an_error_thoroughly(run: Path, data: bytes) -> None:
    check_stored(run, data)

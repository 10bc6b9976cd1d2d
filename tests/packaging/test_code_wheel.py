"""The wheel of grpo-rewards-code with core's alone: works, and says what to install for what is not in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.packaging.alone import grpoctl, make_import_path

TESTS = {"kind": "call", "fn_name": "square", "cases": [{"args": [3], "expected": 9}]}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def import_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_import_path(tmp_path_factory.mktemp("wheels"), "core", "plugins/grpo-rewards-code")


def test_the_plugin_is_there_and_the_others_are_not(import_path: str, tmp_path: Path) -> None:
    listed = grpoctl(import_path, tmp_path, "plugins", "list")
    assert "grpo-rewards-code" in listed
    assert "grpo-rewards-math" not in listed


def test_a_reward_of_another_package_says_which_one_to_install(import_path: str, tmp_path: Path) -> None:
    row = {"question": "Square a number.", "tests": TESTS}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    run = ("train", "--model", "none", "--dataset", "rows.jsonl", "--dry-run")
    said = grpoctl(import_path, tmp_path, *run, "--rewards", "math_reward,code_reward", code=3)
    assert "no plugin registers a reward 'math_reward'" in said
    assert "pip install grpo-rewards-math" in said
    assert "Did you mean" not in said


def test_the_reward_runs_programs_from_the_wheel(import_path: str, tmp_path: Path) -> None:
    program = "```python\ndef square(n):\n    return n * n\n```"
    row = json.dumps({"tests": TESTS})
    said = grpoctl(import_path, tmp_path, "rewards", "try", "code_reward", "--completion", program, "--row", row)
    assert "1 of 1 tests passed" in said


def test_the_wheel_has_its_unit_tests(import_path: str, tmp_path: Path) -> None:
    assert "as expected" in grpoctl(import_path, tmp_path, "rewards", "test", "code_reward")

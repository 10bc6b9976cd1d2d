"""The wheel of grpo-rewards-code with core's alone: works, and says what to install for what is not in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = ("core", "plugins/grpo-rewards-code")
TESTS = {"kind": "call", "fn_name": "square", "cases": [{"args": [3], "expected": 9}]}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def import_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is in the two wheels, and other people's packages: none of this project's that is installed here."""
    folder = tmp_path_factory.mktemp("wheels")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-build-isolation", "--no-index", "--no-deps"]
    sources = [str(ROOT / name) for name in DISTRIBUTIONS]
    subprocess.run([*pip, "wheel", *offline, "--wheel-dir", str(folder / "built"), *sources], check=True)
    wheels = [str(path) for path in (folder / "built").glob("*.whl")]
    subprocess.run([*pip, "install", *offline, "--target", str(folder / "site"), *wheels], check=True)
    others = folder / "others"
    others.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(("grpo", "__editable__")) and path.suffix != ".pth":
            (others / path.name).symlink_to(path)
    return f"{folder / 'site'}{os.pathsep}{others}"


def grpoctl(import_path: str, folder: Path, *arguments: str, code: int = 0) -> str:
    """Run the command where nothing else of this project can be imported; what it said."""
    environment = {**os.environ, "PYTHONPATH": import_path, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-S", "-m", "grpo_core", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


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

"""The example with one's own data and reward, in README.md and docs/quickstart.md, is run as it stands there."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.integration.runs import grpoctl, metrics_of

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/quickstart.md")


def example(page: str) -> str:
    """The block that writes the files."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    return next(str(block) for block in blocks if "rows.jsonl" in block)


def commands(page: str) -> list[str]:
    """As a shell gets them."""
    lines = [re.sub(r"^> ?", "", line) for line in example(page).splitlines()]
    return re.split(r"^\$ ", "\n".join(lines), flags=re.MULTILINE)[1:]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the example."""
    written = [command for command in commands(PAGES[0]) if not command.startswith("grpoctl")]
    subprocess.run(["bash", "-c", "\n".join(written)], cwd=tmp_path, check=True)
    return tmp_path


def arguments(start: str) -> list[str]:
    """Of the command that begins like this."""
    command = next(command for command in commands(PAGES[0]) if command.startswith(f"grpoctl {start}"))
    model = next(command for command in commands(PAGES[0]) if command.startswith("export")).split("=")[1].split()[0]
    return command.replace("\\\n", " ").replace("$MODEL", model).split()[1:]


def test_both_pages_have_the_same_example() -> None:
    assert example(PAGES[0]) == example(PAGES[1])


def test_the_reward_of_the_example_passes_its_audit(folder: Path) -> None:
    assert "every control is as it should" in grpoctl(folder, *arguments("rewards audit")).stdout


def test_the_plan_of_the_example_is_shown_without_a_word_of_warning(folder: Path) -> None:
    done = grpoctl(folder, *arguments("train"))
    assert "completions" in done.stdout
    assert "warning" not in done.stderr
    assert len([json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]) == 8


@pytest.mark.slow
def test_the_model_of_the_example_is_paid_and_learns(folder: Path) -> None:
    given = [each for each in arguments("train") if each != "--dry-run"]
    grpoctl(folder, *given, "--output", "run")
    paid = [float(str(row["rewards/my_reward/mean"])) for row in metrics_of(folder / "run")]
    assert paid[0] > 0
    assert sum(paid[-3:]) > sum(paid[:3])

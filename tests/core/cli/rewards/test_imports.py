"""Looking at a reward imports no engine, whichever command looks."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOOK = """
import contextlib, sys
from grpo_core.cli import main as cli
sys.argv = ["grpoctl", "rewards", *ARGUMENTS]
with contextlib.suppress(SystemExit):
    cli.main()
heavy = [module for module in ("torch", "transformers", "datasets") if module in sys.modules]
assert not heavy, heavy
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["try", "format_reward", "--completion", "a", "--row", "x=1"],
        ["test", "format_reward"],
        ["audit", "format_reward", "--dataset", "ROWS"],
    ],
)
def test_looking_at_a_reward_imports_no_engine(arguments: list[str], rows: str) -> None:
    given = [rows if each == "ROWS" else each for each in arguments]
    code = LOOK.replace("ARGUMENTS", repr(given))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

"""Threads that wait sleep soon, unless the environment says otherwise."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SHOW = """
import sys
import grpo_core.cli.main as command
sys.argv = ["grpoctl", "--version"]
try:
    command.main()
except SystemExit:
    pass
import os
assert "torch" not in sys.modules
print(os.environ.get("GOMP_SPINCOUNT"))
"""


@pytest.mark.parametrize(
    ("given", "kept"),
    [({}, "10000"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "None"), ({"GOMP_SPINCOUNT": "7"}, "7")],
)
def test_the_command_says_how_threads_wait_before_torch_is_there(given: dict[str, str], kept: str) -> None:
    environment = {name: os.environ[name] for name in os.environ if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    done = subprocess.run(
        [sys.executable, "-c", SHOW], env=environment | given, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == kept

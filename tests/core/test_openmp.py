"""Threads that wait sleep, unless the environment says otherwise."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from grpo_core.openmp import let_waiting_threads_sleep

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
print(os.environ["OMP_WAIT_POLICY"])
"""


@pytest.mark.parametrize(("given", "kept"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_the_command_says_how_threads_wait_before_torch_is_there(given: str | None, kept: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    if given is not None:
        environment["OMP_WAIT_POLICY"] = given
    done = subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == kept


def test_what_the_environment_says_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    let_waiting_threads_sleep()
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"

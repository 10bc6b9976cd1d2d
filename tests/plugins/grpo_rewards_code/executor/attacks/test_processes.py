"""Processes: none outside gets a signal, and none inside outlives its program or the trainer."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grpo_rewards_code.executor.types import Limits
from tests.plugins.grpo_rewards_code.places import Place
from tests.processes import below, wait_until_gone

_SHORT = Limits(wall_s=3.0, cpu_s=3.0)


@pytest.mark.parametrize("signal_name", ["SIGKILL", "SIGSTOP", "SIGTERM", "SIGINT"])
def test_no_signal_reaches_another_process(place: Place, signal_name: str) -> None:
    program = f"""
import os, signal
for pid in [os.getppid(), 1, 0, *range(2, 40), {os.getpid()}]:
    if pid not in (os.getpid(), 0):
        try:
            os.kill(pid, signal.{signal_name})
        except OSError:
            pass
print("alive")
"""
    everybody = "import os, signal\ntry:\n    os.kill(-1, signal.SIGKILL)\nexcept OSError:\n    pass\nprint('alive')"
    assert [result.stdout for result in place.scripts([program, everybody, program])] == ["alive\n"] * 3
    assert place.says("print(1)") == "1"


def test_children_work_where_there_are_namespaces(place: Place) -> None:
    program = """
import multiprocessing, os, subprocess, sys
def square(x):
    return x * x
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        print(pool.map(square, [1, 2, 3]))
    print(subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True).stdout)
"""
    result = place.script(program)
    if place.mode == "alone":
        assert (result.status, "PermissionError" in result.detail) == ("error", True)
    else:
        assert (result.status, result.stdout.split()) == ("ok", ["[1,", "4,", "9]", "42"])


def test_no_child_outlives_its_program(place: Place) -> None:
    token = f"sandbox-test-{os.getpid()}-{time.monotonic_ns()}"
    program = f"""
import os, subprocess, sys
for _ in range(5):
    try:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", {token!r}], start_new_session=True,
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        pass
if {{}}:
    while True:
        pass
print("done")
"""
    ended, endless = program.replace("{}", "False"), program.replace("{}", "True")
    results = place.scripts([ended, endless], limits=_SHORT)
    assert [result.status for result in results] == ["ok", "timeout"]
    assert not _with_command(token)


def _with_command(token: str) -> list[str]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if token.encode() in command:
            found.append(name)
    return found


def test_the_sandboxes_end_with_a_trainer_that_is_killed(place: Place) -> None:
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[5])!r})
from tests.plugins.grpo_rewards_code.places import Place
from grpo_rewards_code.executor.types import Limits
place = Place({place.mode!r})
place.script("import time\\ntime.sleep(1000)", limits=Limits(wall_s=900.0))
"""
    with subprocess.Popen([sys.executable, "-c", script], start_new_session=True) as trainer:
        until = time.monotonic() + 60
        while not below(trainer.pid) and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(1.0)
        family = below(trainer.pid)
        assert family
        trainer.kill()
    assert wait_until_gone(family, limit_s=20.0) == []

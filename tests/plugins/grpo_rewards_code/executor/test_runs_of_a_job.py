"""The runs of one job share namespaces for as long as nothing is left in them; no run finds anything of another."""

from __future__ import annotations

import pytest

from grpo_rewards_code.executor.types import Limits, StdinRun
from grpo_rewards_code.sandbox.inside.syscalls import number
from tests.plugins.grpo_rewards_code.places import Place

_THREE = [StdinRun(stdin="")] * 3
_NAMESPACE = "import os\nprint(os.readlink('/proc/self/ns/pid'), sorted(os.listdir('/tmp')))\n"


@pytest.fixture
def nested() -> Place:
    return Place("nested")


def _outputs(place: Place, program: str) -> list[str]:
    results = place.run(program, *_THREE)
    assert [each.status for each in results] == ["ok"] * 3, results
    return [each.stdout.strip() for each in results]


def test_runs_that_leave_nothing_share_namespaces(nested: Place) -> None:
    assert len(set(_outputs(nested, _NAMESPACE))) == 1


def test_jobs_never_share_namespaces(nested: Place) -> None:
    both = [result.stdout for result in nested.scripts([_NAMESPACE, _NAMESPACE])]
    assert len(set(both)) == 2
    assert len({*both, *_outputs(nested, _NAMESPACE)}) == 3


@pytest.mark.parametrize(
    "leaves",
    [
        pytest.param("open('/tmp/left', 'w').close()", id="a file"),
        pytest.param("os.mkdir('/dev/shm/left')", id="a folder in shared memory"),
        pytest.param("os.mkfifo('/tmp/left')", id="a pipe"),
        pytest.param("os.chmod('/tmp', 0o500)", id="another mode"),
        pytest.param("os.utime('/tmp', (5, 5))", id="a time"),
    ],
)
def test_what_a_run_leaves_is_not_there_for_the_next(nested: Place, leaves: str) -> None:
    look = "before = os.stat('/tmp')\nprint(oct(before.st_mode), before.st_mtime == 5)\n"
    outputs = _outputs(nested, f"{_NAMESPACE}{look}{leaves}\n")
    assert {each.partition(" ")[2] for each in outputs} == {"[]\n0o40700 False"}
    assert len({each.partition(" ")[0] for each in outputs}) == 3


def test_no_process_of_a_run_is_there_for_the_next(nested: Place) -> None:
    program = """
import os, time
print([pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) not in (1, os.getpid())])
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        time.sleep(1000)
"""
    assert _outputs(nested, program) == ["[]"] * 3


def test_a_run_that_is_stopped_takes_none_of_the_others_with_it(nested: Place) -> None:
    program = "import sys, time\nif input() == 'sleep': time.sleep(1000)\nprint('done')"
    limits = Limits(wall_s=2.0, cpu_s=2.0)
    runs = [StdinRun(stdin=text) for text in ("go", "sleep", "go")]
    results = nested.run(program, *runs, limits=limits, stop_at_failure=False)
    assert [each.status for each in results] == ["ok", "timeout", "ok"]


def test_the_limits_of_who_watches_cannot_be_touched(nested: Place) -> None:
    program = """
import resource
for limit in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_AS):
    try:
        resource.prlimit(1, limit, (0, 0))
        print("changed")
    except PermissionError:
        pass
print("end")
"""
    assert _outputs(nested, program) == ["end"] * 3


def test_no_message_queue_can_be_left(nested: Place) -> None:
    program = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall({number("mq_open")}, b"left", 0o102, 0o600, None), ctypes.get_errno())
"""
    assert _outputs(nested, program) == ["-1 1"] * 3

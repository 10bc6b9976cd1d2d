"""Bombs stop at the limits: processes, threads, memory, files, error output."""

from __future__ import annotations

import os

import pytest

from grpo_rewards_code.executor.types import Limits
from tests.plugins.grpo_rewards_code.places import Place

_SHORT = Limits(wall_s=3.0, cpu_s=3.0)


def test_a_fork_bomb_and_a_thread_bomb_stop_at_the_limit(place: Place) -> None:
    forks = "import os, time\nwhile True:\n    os.fork()"
    stubborn = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    threads = """
import threading, time
threading.stack_size(65536)
while True:
    try:
        threading.Thread(target=time.sleep, args=(60,)).start()
    except RuntimeError:
        time.sleep(0.01)
"""
    results = place.scripts([forks, stubborn, threads], limits=_SHORT)
    assert all(result.status in ("error", "timeout", "processes", "killed") for result in results), results
    assert _processes_of_this_machine() < 1000


def _processes_of_this_machine() -> int:
    return len(list(filter(str.isdigit, os.listdir("/proc"))))


def test_the_memory_of_all_processes_together_is_limited(place: Place) -> None:
    program = """
import mmap, os, time
for _ in range(8):
    if os.fork() == 0:
        held = mmap.mmap(-1, 100 << 20)
        held.write(b"x" * (100 << 20))
        time.sleep(60)
time.sleep(60)
"""
    result = place.script(program, limits=Limits(wall_s=30.0, memory_mib=256))
    assert result.status == ("error" if place.mode == "alone" else "memory"), result


def test_files_fill_neither_memory_nor_disk(place: Place) -> None:
    program = """
import os
total = files = 0
try:
    with open("/tmp/large", "wb") as file:
        while True:
            file.write(b"x" * (1 << 20))
            file.flush()
            total += 1
except OSError:
    pass
for number in range(200):
    try:
        with open(f"/tmp/{number}", "wb") as file:
            file.write(b"x" * (3 << 20))
            total += 3
    except OSError:
        break
print(total)
"""
    used_mib = int(place.script(program, limits=Limits(file_mib=4, wall_s=20.0)).stdout)
    assert used_mib <= (64 if place.mode == "single" else 16)
    assert place.script(program, limits=Limits(file_mib=0, wall_s=20.0)).stdout == "0\n"


@pytest.mark.parametrize("place", ["nested", "alone"], indirect=True)
def test_the_number_of_files_is_limited(place: Place) -> None:
    """Bubblewrap by itself cannot limit it, which docs/security.md says."""
    program = """
n = 0
try:
    while True:
        open(f"/tmp/{n}", "w").close()
        n += 1
except OSError:
    print(n)
"""
    assert int(place.says(program)) < 1100


def test_error_output_without_end_is_not_kept(place: Place) -> None:
    result = place.script("import sys\nfor _ in range(50):\n    sys.stderr.write('e' * 10**6)\nprint('done')")
    assert (result.status, result.stdout) == ("ok", "done\n")
    assert len(result.detail) <= 5000

"""Bombs stop at the limits: processes, threads, memory, files, error output."""

from __future__ import annotations

import os

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
import time
total = 0
try:
    with open("large", "wb") as file:
        while True:
            file.write(b"x" * (1 << 20))
            file.flush()
            total += 1
except OSError:
    pass
for number in range(200):
    try:
        with open(str(number), "wb") as file:
            file.write(b"x" * (3 << 20))
            total += 3
    except OSError:
        break
time.sleep(0.3)
print(total)
"""
    result = place.script(program, limits=Limits(file_mib=4, wall_s=20.0))
    if place.mode == "nested":
        assert int(result.stdout) <= 16
    else:
        assert (result.status, "4 times 4 MiB" in result.detail) == ("output", True), result
    assert place.script(program, limits=Limits(file_mib=0, wall_s=20.0)).stdout == "0\n"


def test_the_number_of_files_is_limited(place: Place) -> None:
    program = """
import os, time
n = 0
try:
    while n < 3000:
        os.mkdir(str(n))
        n += 1
except OSError:
    pass
time.sleep(0.3)
print(n)
"""
    result = place.script(program)
    if place.mode == "nested":
        assert int(result.stdout) < 1100
    else:
        assert (result.status, "1024 files" in result.detail) == ("output", True), result


def test_files_without_a_name_count_for_as_long_as_they_are_open(place: Place) -> None:
    program = """
import os, threading, time
held = []
try:
    for number in range(100):
        held.append(open("file", "wb"))
        os.unlink("file")
        held[-1].write(b"x" * (4 << 20))
        held[-1].flush()
except OSError:
    held.clear()
    print("full")
time.sleep(0.3)
"""
    result = place.script(program, limits=Limits(file_mib=4, wall_s=20.0))
    assert (result.status if place.mode == "alone" else result.stdout) == (
        "output" if place.mode == "alone" else "full\n"
    )


def test_error_output_without_end_is_not_kept(place: Place) -> None:
    result = place.script("import sys\nfor _ in range(50):\n    sys.stderr.write('e' * 10**6)\nprint('done')")
    assert (result.status, result.stdout) == ("ok", "done\n")
    assert len(result.detail) <= 5000

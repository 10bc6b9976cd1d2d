"""Cores and memory that a process may use, of machines and containers of both kinds of control groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grpo_core.machine import available_cores, available_memory

GIB = 2**30
INFO = f"MemTotal: {16 << 20} kB\nMemFree: 100 kB\nMemAvailable: {8 << 20} kB\n"


@pytest.fixture(autouse=True)
def _sixteen_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)


def machine(root: Path, groups: str, files: dict[str, str]) -> Path:
    """A folder that looks as `/` does to a process of these control groups."""
    for name, text in {"proc/self/cgroup": groups, "proc/meminfo": INFO, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_a_machine_without_limits_has_its_cores_and_what_memory_is_available(tmp_path: Path) -> None:
    root = machine(tmp_path, "0::/\n", {"sys/fs/cgroup/memory.stat": "anon 1\n"})
    assert available_cores(root) == 16
    assert available_memory(root) == 8 * GIB


def test_where_nothing_is_known_there_is_a_core_and_no_word_of_memory(tmp_path: Path) -> None:
    assert available_cores(tmp_path) == 16
    assert available_memory(tmp_path) is None


@pytest.mark.parametrize(
    ("quota", "cores"),
    [
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),
        ("10000 100000\n", 1),
        ("max 100000\n", 16),
        ("9900000 100000", 16),
    ],
)
def test_a_quota_of_processor_time_counts_as_cores(tmp_path: Path, quota: str, cores: int) -> None:
    assert available_cores(machine(tmp_path, "0::/\n", {"sys/fs/cgroup/cpu.max": quota})) == cores


@pytest.mark.parametrize(("quota", "cores"), [("400000\n", 4), ("-1\n", 16)])
def test_so_does_that_of_the_older_control_groups(tmp_path: Path, quota: str, cores: int) -> None:
    folder = "sys/fs/cgroup/cpu/jobs/17"
    files = {f"{folder}/cpu.cfs_quota_us": quota, f"{folder}/cpu.cfs_period_us": "100000\n"}
    assert available_cores(machine(tmp_path, "3:cpu,cpuacct:/jobs/17\n5:memory:/\n", files)) == cores


def test_the_tightest_group_on_the_way_up_counts(tmp_path: Path) -> None:
    files = {
        "sys/fs/cgroup/slice/job/memory.max": "max\n",
        "sys/fs/cgroup/slice/memory.max": f"{6 * GIB}\n",
        "sys/fs/cgroup/slice/memory.current": f"{3 * GIB}\n",
        "sys/fs/cgroup/slice/memory.stat": f"anon 5\ninactive_file {GIB}\n",
        "sys/fs/cgroup/slice/cpu.max": "300000 100000\n",
        "sys/fs/cgroup/slice/job/cpu.max": "max 100000\n",
    }
    root = machine(tmp_path, "0::/slice/job\n", files)
    assert available_memory(root) == 4 * GIB, "6, less 3, of which 1 can be read again"
    assert available_cores(root) == 3


def test_a_limit_of_the_older_control_groups_counts(tmp_path: Path) -> None:
    folder = "sys/fs/cgroup/memory"
    files = {
        f"{folder}/memory.limit_in_bytes": f"{2 * GIB}\n",
        f"{folder}/memory.usage_in_bytes": f"{GIB}\n",
        f"{folder}/memory.stat": f"inactive_file 7\ntotal_inactive_file {GIB // 2}\n",
    }
    # The path is that of outside; inside the container its own group is at the top.
    root = machine(tmp_path, "4:memory:/docker/0123\n", files)
    assert available_memory(root) == 3 * GIB // 2


def test_a_group_over_its_limit_has_nothing_left(tmp_path: Path) -> None:
    files = {"sys/fs/cgroup/memory.max": "100\n", "sys/fs/cgroup/memory.current": "200\n"}
    assert available_memory(machine(tmp_path, "0::/\n", files)) == 0


def test_this_machine_has_some_of_both() -> None:
    memory = available_memory()
    assert 1 <= available_cores() <= 16
    assert memory is None or memory > 0

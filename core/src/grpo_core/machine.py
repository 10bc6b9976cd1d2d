"""What this process may use of its machine: cores and memory, and of both no more than its control groups grant, which
a container or a batch system sets. Linux says all of it; elsewhere some is not known.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["WAITING_A_CORE", "available_cores", "available_memory"]

WAITING_A_CORE = 32
"""The most processes or threads a core that are of use where they mostly wait, for a service elsewhere."""
_ROOT = Path("/")


def available_cores(root: Path = _ROOT) -> int:
    """CPU cores: those it may run on, or as many as its groups grant the time of, rounded up. At least 1."""
    may_use = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    granted = [each for each in map(_granted_cores, _groups(root, "cpu")) if each is not None]
    return max(1, min([may_use, *granted]))


def available_memory(root: Path = _ROOT) -> int | None:
    """Bytes that can be taken without anything being swapped out or killed; None: not known."""
    free = [_number(line) for line in _read(root / "proc/meminfo").splitlines() if line.startswith("MemAvailable:")]
    left = [each for each in map(_left_in, _groups(root, "memory")) if each is not None]
    known = [*(kib << 10 for kib in free), *left]
    return max(0, min(known)) if known else None


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of the control groups that this process is in, of both versions, with all above them."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / (controller if controllers else "")
        own = top / path.strip("/")
        # In a container the path may be that of outside, and its own group is at the top.
        yield from (each for each in (own, *own.parents) if each.is_relative_to(top) and each.is_dir())


def _granted_cores(group: Path) -> int | None:
    """The cores that a group's quota is worth, rounded up; None: it has none."""
    quota, _, period = _read(group / "cpu.max").partition(" ")
    quota = quota or _read(group / "cpu.cfs_quota_us")
    period = period or _read(group / "cpu.cfs_period_us")
    if not quota.strip().isdecimal() or not period.strip().isdecimal() or not int(period):
        return None  # "max", or -1
    return -(-int(quota) // int(period))


def _left_in(group: Path) -> int | None:
    """What a group may still take: its limit without what it holds, but for files that can be read again."""
    limit = _read(group / "memory.max") or _read(group / "memory.limit_in_bytes")
    if not limit.strip().isdecimal():
        return None
    used = _read(group / "memory.current") or _read(group / "memory.usage_in_bytes")
    facts = [line for line in _read(group / "memory.stat").splitlines() if line]
    names = ("total_inactive_file", "inactive_file")
    files = next((_number(line) for name in names for line in facts if line.split()[0] == name), 0)
    return int(limit) - int(used or 0) + files


def _number(line: str) -> int:
    return int(line.split()[1])


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8")
    return ""

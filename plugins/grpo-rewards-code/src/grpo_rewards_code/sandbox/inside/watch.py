"""Watching a running program: until it ends, is told to stop, or takes more than it may.

What the kernel cannot limit for several processes together is looked at here, many times a second: the memory of all of
them, how many processes and threads there are, and what is in the program's folders where the kernel cannot limit that.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from grpo_rewards_code.sandbox.inside.folder import exceeds
from grpo_rewards_code.sandbox.inside.kernel import read_bytes

__all__ = ["watch"]

_INTERVAL_MS = 25
_LARGEST_MESSAGE = 1 << 16
_PAGE_BYTES = resource.getpagesize()


def watch(
    pid: int,
    limits: Mapping[str, Any],
    *,
    whole_namespace: bool,
    line: socket.socket | None = None,
    folders: Sequence[str] = (),
) -> dict[str, object]:
    """Wait for a child of this process to end, and say how it did.

    Args:
        pid: the program's process.
        limits: what it may use.
        whole_namespace: whether every other process of this PID namespace, whose first this is, belongs to the program.
        line: where an order to stop may come from.
        folders: the program's own, to look into.
    """
    watched = os.pidfd_open(pid)
    poller = select.poll()
    poller.register(watched, select.POLLIN)
    if line is not None:
        poller.register(line, select.POLLIN)
    baseline = _resident_pages(os.getpid())
    exceeded: str | None = None
    while exceeded is None:
        ready = [descriptor for descriptor, _ in poller.poll(_INTERVAL_MS)]
        if watched in ready:
            break
        if ready and line is not None:
            line.recv(_LARGEST_MESSAGE)
            exceeded = "stopped"
        else:
            exceeded = _exceeded(list(_processes(pid, whole_namespace)), limits, baseline)
            if exceeded is None and folders and exceeds(folders, limits["file_mib"], None if whole_namespace else pid):
                exceeded = "files"
    if whole_namespace:
        os.kill(-1, signal.SIGKILL)  # what it started and left behind
    elif exceeded is not None:
        os.kill(pid, signal.SIGKILL)
    os.close(watched)
    _, status, usage = os.wait4(pid, 0)
    if whole_namespace:
        _reap()
    return {"limit": exceeded, "status": status, "cpu_s": usage.ru_utime + usage.ru_stime}


def _reap() -> None:
    """Wait for the end of the rest, which has been killed: dead or not, a process counts until then."""
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return


def _exceeded(processes: list[tuple[int, int]], limits: Mapping[str, Any], baseline: int) -> str | None:
    """Which limit these processes, as (threads, resident pages), exceed together."""
    if sum(threads for threads, _ in processes) > limits["processes"]:
        return "processes"
    own_pages = sum(max(0, pages - baseline) for _, pages in processes)
    return "memory" if own_pages * _PAGE_BYTES > limits["memory_mib"] << 20 else None


def _processes(pid: int, whole_namespace: bool) -> Iterator[tuple[int, int]]:
    own = os.getpid()
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()] if whole_namespace else [pid]
    for each in pids:
        if each != own:
            try:
                fields = read_bytes(f"/proc/{each}/stat").rpartition(b")")[2].split()  # the name is the program's
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
            yield int(fields[17]), int(fields[21])


def _resident_pages(pid: int) -> int:
    return int(read_bytes(f"/proc/{pid}/statm").split()[1])

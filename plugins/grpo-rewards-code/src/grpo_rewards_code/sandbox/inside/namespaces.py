"""Fresh namespaces for one run, within those that bubblewrap made: nothing of a run is left for the next.

The first process in them watches the program: from inside it cannot be killed, stopped, traced or read, and when it
ends the kernel ends every other process there. The program's own folder, which is also its shared memory, is a file
system in memory that nobody else sees and that goes with them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from grpo_rewards_code.sandbox.inside import kernel
from grpo_rewards_code.sandbox.inside.child import become_program, guarded
from grpo_rewards_code.sandbox.inside.watch import watch

__all__ = ["start"]

_FILES = 1024
_FOLDER_IN_FILES = 4
"""How many of the largest files the program's folder holds, altogether."""


def start(limits: Mapping[str, Any], descriptors: Sequence[int], report: int, confine: Callable[[], None]) -> int:
    """Start a run; the process id of its first process, which writes its report and ends when the program does."""
    user, group = os.getuid(), os.getgid()
    flags = kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWIPC
    pid = kernel.clone(flags)
    if pid == 0:
        guarded(report, lambda: _first_process(limits, descriptors, report, confine, user, group))
    return pid


def _first_process(
    limits: Mapping[str, Any],
    descriptors: Sequence[int],
    report: int,
    confine: Callable[[], None],
    user: int,
    group: int,
) -> NoReturn:
    kernel.set_dumpable(True)  # for as long as its own files in /proc are written
    _map_user(user, group)
    _mount_own(limits)
    kernel.set_no_new_privileges()
    kernel.drop_capabilities()
    kernel.set_dumpable(False)  # before there is a program that could look
    pid = os.fork()
    if pid == 0:
        guarded(report, lambda: become_program(limits, descriptors, report, confine, in_namespaces=True))
    for descriptor in descriptors:
        os.close(descriptor)
    found = watch(pid, limits, whole_namespace=True)
    os.write(report, json.dumps(found).encode() + b"\n")
    os._exit(0)


def _map_user(user: int, group: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        kernel.write_text(f"/proc/self/{name}", text)


def _mount_own(limits: Mapping[str, Any]) -> None:
    kernel.mount("proc", "/proc")
    size_mib = max(1, _FOLDER_IN_FILES * limits["file_mib"])  # 0 would be no limit
    kernel.mount("tmpfs", "/dev/shm", f"size={size_mib}m,nr_inodes={_FILES},mode=0700")
    kernel.bind("/dev/shm", "/tmp")

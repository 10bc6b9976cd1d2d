"""Fresh namespaces for the runs of one job, within those that bubblewrap made: nothing of a job is left for the next.

The first process in them forks a process for each run and watches it: from inside it cannot be killed, stopped, traced
or read, and when it ends the kernel ends every other process there. The program's own folder, which is also its shared
memory, is a file system in memory that nobody else sees and that goes with them. Making namespaces takes as long as a
short run, so the runs of a job share them for as long as no run has changed that folder or spoken over the network;
what a run leaves behind is never there for the next one.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from grpo_rewards_code.sandbox.inside import kernel
from grpo_rewards_code.sandbox.inside.child import become_program, guarded
from grpo_rewards_code.sandbox.inside.folder import FILES, IN_LARGEST_FILES, look
from grpo_rewards_code.sandbox.inside.watch import watch

__all__ = ["Namespaces"]

_FOLDER = "/tmp"
_NETWORK_COUNTERS = ("/proc/net/snmp", "/proc/net/snmp6")
"""Of packets and connections, which a network namespace keeps."""
_EVERY_KIND = (
    kernel.CLONE_NEWUSER
    | kernel.CLONE_NEWNS
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWUTS
)
_DESCRIPTORS = 5
_LARGEST_MESSAGE = 1 << 16


class Namespaces:
    """Namespaces for runs under the same limits, from outside."""

    def __init__(self, limits: Mapping[str, Any], confine: Callable[[str], None], others: Sequence[int]) -> None:
        """Make them, and start their first process.

        Args:
            limits: what runs may use.
            confine: see `become_program`.
            others: descriptors of this process that the first one must not keep.
        """
        user, group = os.getuid(), os.getgid()
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        others = [*others, self._line.fileno()]
        with theirs:
            self._pid = kernel.clone(_EVERY_KIND)
            if self._pid == 0:
                guarded(
                    lambda fault: theirs.send(fault),
                    lambda: _first_process(theirs, others, limits, confine, user, group),
                )
        self.unchanged = True
        """Whether the next run finds them as the first one did."""

    def run(self, limits: Mapping[str, Any], descriptors: Sequence[int], orders: socket.socket) -> Mapping[str, object]:
        """Run a program to its end, or until there is an order to stop; what to report."""
        try:
            socket.send_fds(self._line, [json.dumps(limits).encode()], descriptors)
        except OSError:
            self.unchanged = False  # it has died, and what it said of that can be read all the same
        poller = select.poll()
        poller.register(self._line, select.POLLIN)
        poller.register(orders, select.POLLIN)
        if self._line.fileno() not in dict(poller.poll()):
            orders.recv(_LARGEST_MESSAGE)
            self.unchanged = False
            return {"limit": "stopped", "status": signal.SIGKILL, "cpu_s": 0.0}
        try:
            message = self._line.recv(_LARGEST_MESSAGE)
        except OSError:
            message = b""
        report: dict[str, object] = json.loads(message or '{"failed": "the process that watched the program died"}')
        self.unchanged = bool(report.pop("unchanged", False))
        return report

    def end(self) -> None:
        """Killing their first process kills all of them."""
        self._line.close()
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _first_process(
    line: socket.socket,
    others: Sequence[int],
    limits: Mapping[str, Any],
    confine: Callable[[str], None],
    user: int,
    group: int,
) -> NoReturn:
    for descriptor in others:
        os.close(descriptor)
    kernel.set_dumpable(True)  # for as long as its own files in /proc are written
    _map_user(user, group)
    _mount_own(limits)
    kernel.raise_loopback()
    kernel.set_no_new_privileges()
    kernel.drop_capabilities()
    kernel.set_dumpable(False)  # before there is a program that could look
    fresh = _look()
    while True:
        message, descriptors, _, _ = socket.recv_fds(line, _LARGEST_MESSAGE, _DESCRIPTORS)
        if not message:
            os._exit(0)
        report = _run(json.loads(message), descriptors, confine)
        line.send(json.dumps({**report, "unchanged": _look() == fresh}).encode())


def _run(limits: Mapping[str, Any], descriptors: Sequence[int], confine: Callable[[str], None]) -> Mapping[str, object]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        guarded(
            lambda fault: os.write(writing, fault),
            lambda: become_program(limits, descriptors, writing, confine, _FOLDER, in_namespaces=True),
        )
    for descriptor in (writing, *descriptors):
        os.close(descriptor)
    found = watch(pid, limits, whole_namespace=True)
    fault = os.read(reading, _LARGEST_MESSAGE)  # nobody is left who could write
    os.close(reading)
    return json.loads(fault) if fault else found


def _look() -> tuple[object, ...]:
    """The same again only while nothing was left in the program's folder, and nothing sent."""
    counters = [kernel.read_bytes(each) for each in _NETWORK_COUNTERS if os.path.exists(each)]  # not all have IPv6
    return look(_FOLDER), counters


def _map_user(user: int, group: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        kernel.write_text(f"/proc/self/{name}", text)


def _mount_own(limits: Mapping[str, Any]) -> None:
    kernel.mount("proc", "/proc")
    size_mib = max(1, IN_LARGEST_FILES * limits["file_mib"])  # 0 would be no limit
    kernel.mount("tmpfs", "/dev/shm", f"size={size_mib}m,nr_inodes={FILES},mode=0700")
    kernel.bind("/dev/shm", _FOLDER)

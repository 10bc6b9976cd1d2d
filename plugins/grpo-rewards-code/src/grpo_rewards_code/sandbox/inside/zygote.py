"""The zygote: an interpreter that has imported what programs import, and forks a process for each run.

It never reads a program, an input or an output: those go through pipes between the host and the process that runs the
program, whose ends come with each request. So every run forks from the same pristine state, and there is nothing here
of an earlier run to find. It asks for orders between runs and waits for the host or the run during one; when the host
is gone, so is it, and with it everything it started.

Place in the flow: host → enter → (bubblewrap →) **zygote** → program.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import select
import signal
import site
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from grpo_rewards_code.sandbox.inside import landlock, namespaces, seccomp
from grpo_rewards_code.sandbox.inside.child import become_program, guarded
from grpo_rewards_code.sandbox.inside.kernel import die_with_parent, set_dumpable
from grpo_rewards_code.sandbox.inside.watch import watch

__all__ = ["main"]

_LARGEST_MESSAGE = 1 << 16
_DESCRIPTORS = 5
_OUT_OF_THE_WAY = 128  # the program's own descriptors are put at the lowest numbers
_THREAD_STACK_BYTES = 8 << 20  # as usual; it would otherwise be that of the main thread


def main(line: socket.socket, configuration: Mapping[str, Any]) -> None:
    """Serve runs until the host closes its end; does not return."""
    sys.path += configuration["import_folders"]
    for name in configuration["preload"]:
        importlib.import_module(name)
    site.setquit()  # the interpreter was started without `site`, whose builtins programs use
    site.sethelper()
    threading.stack_size(_THREAD_STACK_BYTES)
    # A first process of a PID namespace is immune to signals from inside, but for those it handles.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    set_dumpable(False)
    confine = _confinement(configuration["mode"], configuration["readable"])
    gc.collect()
    gc.freeze()
    line.send(json.dumps({"ready": True}).encode())
    while True:
        message, descriptors, _, _ = socket.recv_fds(line, _LARGEST_MESSAGE, _DESCRIPTORS)
        if not message:
            os._exit(0)
        if not descriptors:
            continue  # an order to stop a run that had just ended
        report = _run(configuration["mode"], json.loads(message), descriptors, line, confine)
        line.send(json.dumps(report).encode())


def _confinement(mode: str, readable: Sequence[str]) -> Callable[[], None]:
    """What puts a program's process under its filters, prepared as far as that can be done once."""
    if mode != "alone":
        filter_ = seccomp.compiled(seccomp.in_namespaces())
        return lambda: seccomp.install(filter_)
    alone = seccomp.compiled(seccomp.alone())
    made = landlock.make_ruleset(readable)
    rules = fcntl.fcntl(made, fcntl.F_DUPFD, _OUT_OF_THE_WAY)
    os.close(made)

    def confine() -> None:
        die_with_parent()
        landlock.restrict(rules)
        seccomp.install(seccomp.compiled(seccomp.own_signals(os.getpid())))
        seccomp.install(alone)

    return confine


def _run(
    mode: str,
    limits: Mapping[str, Any],
    descriptors: Sequence[int],
    line: socket.socket,
    confine: Callable[[], None],
) -> Mapping[str, object]:
    reading, writing = os.pipe()
    try:
        if mode == "nested":
            pid = namespaces.start(limits, descriptors, writing, confine)
        elif (pid := os.fork()) == 0:
            in_namespaces = mode == "single"
            guarded(writing, lambda: become_program(limits, descriptors, writing, confine, in_namespaces=in_namespaces))
    except OSError as error:
        return {"failed": f"a process for the program could not be made: {error}"}
    finally:
        for descriptor in (writing, *descriptors):
            os.close(descriptor)
    with open(reading, "rb") as reports:
        if mode == "nested":
            return _await_first_process(pid, line, reports)
        found = watch(pid, limits, line=line, whole_namespace=mode == "single")
        return _first(reports) or found


def _await_first_process(pid: int, line: socket.socket, reports: BinaryIO) -> Mapping[str, object]:
    """Wait for the end of a run in namespaces of its own; killing their first process kills all of them."""
    watched = os.pidfd_open(pid)
    poller = select.poll()
    poller.register(watched, select.POLLIN)
    poller.register(line, select.POLLIN)
    ended = dict(poller.poll())
    stopped = line.fileno() in ended and watched not in ended
    if stopped:
        line.recv(_LARGEST_MESSAGE)
        os.kill(pid, signal.SIGKILL)
    os.close(watched)
    os.waitpid(pid, 0)
    report = _first(reports)
    if stopped:
        return {"limit": "stopped", "status": signal.SIGKILL, "cpu_s": 0.0}
    return report or {"failed": "the process that watched the program died"}


def _first(reports: BinaryIO) -> Mapping[str, object] | None:
    """What was reported first: where a fault of ours is among the reports, nothing else counts."""
    line = reports.readline()
    return json.loads(line) if line else None

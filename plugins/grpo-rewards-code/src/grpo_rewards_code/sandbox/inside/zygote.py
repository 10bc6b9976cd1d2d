"""The zygote: an interpreter that has imported what programs import, and forks a process for each run (through
namespaces of the job's own, where it can make them).

It never reads a program, an input or an output: those go through pipes between the host and the process that runs the
program, whose ends come with each request. So every run forks from the same pristine state, and there is nothing here
of an earlier run to find. It asks for orders between runs and waits for the host or the run during one; when the host
is gone, so is it, and with it everything it started.

Place in the flow: host → enter → (bubblewrap →) **zygote** → program.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import site
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grpo_rewards_code.sandbox.inside import landlock, seccomp
from grpo_rewards_code.sandbox.inside.child import become_program, guarded
from grpo_rewards_code.sandbox.inside.folder import Folders
from grpo_rewards_code.sandbox.inside.kernel import die_with_parent, set_dumpable
from grpo_rewards_code.sandbox.inside.namespaces import Namespaces
from grpo_rewards_code.sandbox.inside.watch import watch

__all__ = ["main"]

_LARGEST_MESSAGE = 1 << 16
_DESCRIPTORS = 5
_FOLDERS_IN_NAMESPACES = ("/tmp", "/dev/shm")
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
    mode = configuration["mode"]
    folders = Folders(configuration["temporary"]) if mode == "alone" else None
    runs = _Runs(mode, line, _confinement(mode, configuration["readable"]), folders)
    gc.collect()
    gc.freeze()
    line.send(json.dumps({"ready": True}).encode())
    try:
        _serve(line, runs)
    finally:
        runs.end()
    os._exit(0)


def _serve(line: socket.socket, runs: _Runs) -> None:
    while True:
        message, descriptors, _, _ = socket.recv_fds(line, _LARGEST_MESSAGE, _DESCRIPTORS)
        if not message:
            return
        if not descriptors:
            continue  # an order to stop a run that had just ended
        line.send(json.dumps(runs.run(json.loads(message), descriptors)).encode())


def _confinement(mode: str, readable: Sequence[str]) -> Callable[[str], None]:
    """What puts a program's process under its filters, prepared as far as that can be done once."""
    if mode != "alone":
        filter_ = seccomp.compiled(seccomp.in_namespaces())
        return lambda folder: seccomp.install(filter_)
    alone = seccomp.compiled(seccomp.alone())

    def confine(folder: str) -> None:
        die_with_parent()
        landlock.restrict(landlock.make_ruleset(readable, folder))
        seccomp.install(seccomp.compiled(seccomp.own_signals(os.getpid())))
        seccomp.install(alone)

    return confine


class _Runs:
    """One run after another."""

    def __init__(self, mode: str, line: socket.socket, confine: Callable[[str], None], folders: Folders | None) -> None:
        self._mode = mode
        self._line = line
        self._confine = confine
        self._folders = folders
        self._namespaces: Namespaces | None = None

    def run(self, order: Mapping[str, Any], descriptors: Sequence[int]) -> Mapping[str, object]:
        """Carry out an order, and close its descriptors; what to report."""
        try:
            if self._mode == "nested":
                return self._nested(order, descriptors)
            if self._folders is None:
                return self._forked(order, descriptors, _FOLDERS_IN_NAMESPACES)
            with self._folders.fresh() as folder:
                return self._forked(order, descriptors, [folder])
        except OSError as error:
            return {"failed": f"a process for the program could not be made: {error}"}
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def end(self) -> None:
        """Leave nothing."""
        if self._folders is not None:
            self._folders.end()

    def _nested(self, order: Mapping[str, Any], descriptors: Sequence[int]) -> Mapping[str, object]:
        if order["first"]:
            self._end_namespaces()
        if self._namespaces is None:
            self._namespaces = Namespaces(order["limits"], self._confine, [*descriptors, self._line.fileno()])
        report = self._namespaces.run(order["limits"], descriptors, self._line)
        if not self._namespaces.unchanged:
            self._end_namespaces()
        return report

    def _end_namespaces(self) -> None:
        if self._namespaces is not None:
            self._namespaces.end()
            self._namespaces = None

    def _forked(
        self, order: Mapping[str, Any], descriptors: Sequence[int], folders: Sequence[str]
    ) -> Mapping[str, object]:
        limits, in_namespaces = order["limits"], self._mode == "single"
        reading, writing = os.pipe()
        try:
            pid = os.fork()
            if pid == 0:
                guarded(
                    lambda fault: os.write(writing, fault),
                    lambda: become_program(
                        limits, descriptors, writing, self._confine, folders[0], in_namespaces=in_namespaces
                    ),
                )
        finally:
            os.close(writing)
        with open(reading, "rb") as faults:
            found = watch(pid, limits, line=self._line, whole_namespace=in_namespaces, folders=folders)
            fault = faults.read()
        return json.loads(fault) if fault else found

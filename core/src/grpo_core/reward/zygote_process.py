"""The trainer's side of a zygote: start it, have it fork and end workers, notice that it is gone.

Place in the flow: pool of workers → **zygote process** → zygote → worker.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress

from grpo_core.errors import RewardError
from grpo_core.reward.wire import ANSWER, END, FORK, ORDER, Nursery, read_exactly, read_frame, write_frame

__all__ = ["ZygoteGoneError", "ZygoteProcess", "describe_status"]

_START_LIMIT_S = 300.0  # it imports what the rewards import, perhaps over a network file system
_ORDER_LIMIT_S = 60.0
_STOP_LIMIT_S = 10.0


class ZygoteGoneError(Exception):
    """The zygote died, or does not answer."""


class ZygoteProcess:
    """A running zygote. Safe to use from several threads."""

    def __init__(self, nursery: Nursery) -> None:
        """Start it and wait until it has imported everything; raises `RewardError` when it cannot."""
        self._lock = threading.Lock()
        self._workers: set[int] = set()
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-P", "-m", "grpo_core.reward.zygote", str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=sys.__stderr__,  # what rewards print is for people; it cannot meet the protocol anywhere
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is the trainer's: rewards finish the step
            )
        try:
            self._introduce(nursery)
        except BaseException:
            self.close()
            raise

    def fork(self) -> tuple[int, socket.socket]:
        """Make a worker: its process id, and the line to it."""
        line, theirs = socket.socketpair()
        try:
            with theirs:
                pid = self._order(FORK, 0, theirs)
        except BaseException:
            line.close()
            raise
        self._workers.add(pid)
        return pid, line

    def end(self, pid: int) -> int:
        """Kill a worker with all it started, if it still runs; the wait status that says how it ended."""
        status = self._order(END, pid)
        self._workers.discard(pid)
        return status

    def close(self) -> None:
        """End it and all its workers."""
        with self._lock:
            self._control.close()
        try:
            self._process.wait(_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.returncode:  # it did not end in order: its workers died with it, but not what they started
            for pid in self._workers:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)  # while there is any, no other process gets the number

    def _introduce(self, nursery: Nursery) -> None:
        until = time.monotonic() + _START_LIMIT_S
        try:
            write_frame(self._control, pickle.dumps(nursery), until)
            reply = read_frame(self._control, until)
        except TimeoutError as error:
            raise RewardError(
                f"the process for reward workers did not finish importing the rewards in {_START_LIMIT_S:g} s"
            ) from error
        except OSError:
            reply = None
        if reply is None:
            status = self._process.wait(_STOP_LIMIT_S)
            raise RewardError(
                f"the process for reward workers ended while it imported the rewards ({_describe_exit(status)})",
                hint="A reward's module ends the process at import; see above for what it wrote.",
            )
        problem = json.loads(reply)["error"]
        if problem is not None:
            raise RewardError(f"a reward that runs in a worker: {problem}")

    def _order(self, kind: bytes, pid: int, their_end: socket.socket | None = None) -> int:
        with self._lock:
            try:
                self._control.settimeout(_ORDER_LIMIT_S)
                descriptors = [their_end.fileno()] if their_end else []
                socket.send_fds(self._control, [ORDER.pack(kind, pid)], descriptors)
                reply = read_exactly(self._control, ANSWER.size, time.monotonic() + _ORDER_LIMIT_S)
            except OSError:  # a TimeoutError is one
                reply = None
        if reply is None:
            raise ZygoteGoneError
        answer: int = ANSWER.unpack(reply)[0]
        return answer


def describe_status(status: int) -> str:
    """A wait status in words: `killed by SIGKILL`, `exit code 137`."""
    return _describe_exit(os.waitstatus_to_exitcode(status))


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name
    return f"killed by {name}, perhaps for want of memory" if -code == signal.SIGKILL else f"killed by {name}"

"""A running sandbox, from the host: start it, run programs in it one at a time, end it.

Place in the flow: job → local executor → **sandbox** → zygote → program.
"""

from __future__ import annotations

import socket
import subprocess
import tempfile
import threading
from typing import BinaryIO

from grpo_rewards_code.executor.types import ExecutorError, Limits
from grpo_rewards_code.sandbox.exchange import Finished, Pipes, Run, exchange
from grpo_rewards_code.sandbox.plan import Plan

__all__ = ["Sandbox"]

_START_LIMIT_S = 60.0
_END_LIMIT_S = 10.0
_LARGEST_MESSAGE = 1 << 16
_WORDS_KEPT_BYTES = 2000


class Sandbox:
    """One zygote behind its walls. Used by one thread at a time."""

    def __init__(self, plan: Plan) -> None:
        """Start it and wait until it is ready; `ExecutorError` with its own words when it does not get there."""
        self._plan = plan
        self._pipes: Pipes | None = None
        try:
            with tempfile.TemporaryFile() as words:
                self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with theirs:
                    self._process = self._start(theirs, words.fileno())
                self._introduce(words)
        except OSError as error:
            raise ExecutorError(f"a sandbox could not be started: {error}") from error

    def run(
        self, *, stdin: bytes, task: bytes, limits: Limits, wanted: threading.Event, first: bool = True
    ) -> Finished:
        """Run one program; see `exchange`."""
        owner = self._plan.user
        return exchange(self._line, stdin=stdin, task=task, limits=limits, owner=owner, wanted=wanted, first=first)

    def order(self, *, task: bytes, limits: Limits) -> Run:
        """A run that goes on to talk, to be started by who carries what it says. Closes its pipes with the sandbox's
        next run."""
        self._end_pipes()
        try:
            self._pipes = Pipes(self._plan.user)
        except OSError as error:
            raise ExecutorError(f"pipes to the sandbox could not be made: {error}") from error
        return Run(self._line, self._pipes, b"", task, limits, talks=True)

    def _end_pipes(self) -> None:
        if self._pipes is not None:
            self._pipes.close_theirs()
            self._pipes.close()
            self._pipes = None

    def close(self) -> None:
        """End it, with all that is in it."""
        self._end_pipes()
        self._line.close()
        try:
            self._process.wait(_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start(self, theirs: socket.socket, words: int) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [*self._plan.python, str(theirs.fileno())],
                env=self._plan.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=words,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is the trainer's
                cwd="/",
            )
        except OSError:
            self._line.close()
            raise

    def _introduce(self, words: BinaryIO) -> None:
        self._line.settimeout(_START_LIMIT_S)
        try:
            for message in self._plan.messages:
                self._line.send(message)
            if not self._line.recv(_LARGEST_MESSAGE):
                raise ConnectionError("it ended while it started")
        except OSError as error:
            self.close()
            words.seek(0)
            said = words.read().decode(errors="replace").strip()[-_WORDS_KEPT_BYTES:]
            raise ExecutorError(f"a sandbox did not start: {said or error}") from error
        self._line.settimeout(None)

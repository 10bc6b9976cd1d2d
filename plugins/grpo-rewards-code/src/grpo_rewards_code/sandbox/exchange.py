"""One run seen from the host: feeding its input, collecting what it writes, and stopping it at a limit.

The program's output is data here and stays data; whoever compares it does so on this side.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from grpo_rewards_code.executor.types import ExecutorError, Limits

__all__ = ["LOOK_S", "Finished", "Pipes", "Run", "exchange"]

_CHUNK_BYTES = 1 << 18
_ERRORS_KEPT_BYTES = 4096
_GRACE_S = 15.0
"""How long a zygote may take to end a run that it was told to stop."""
LOOK_S = 0.1
"""How often somebody's wish to stop is looked at."""
_LARGEST_MESSAGE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a run left behind."""

    stdout: bytes
    errors: bytes
    """The end of its error output."""
    result: bytes
    """What `program.run` had to say of it."""
    limit: str | None
    """The limit at which it was stopped: wall, output, memory, processes, files."""
    status: int
    """Its wait status."""
    cpu_s: float
    wall_s: float


class Pipes:
    """The host's ends of a run's pipes."""

    def __init__(self, owner: int | None) -> None:
        self.theirs: list[int] = []
        self.ours: dict[str, int] = {}
        for name in ("stdin", "stdout", "errors", "task", "result"):
            reading, writing = os.pipe()
            into = name in ("stdin", "task")
            theirs, ours = (reading, writing) if into else (writing, reading)
            self.theirs.append(theirs)
            self.ours[name] = ours
            os.set_blocking(ours, False)
            if owner is not None:  # so that the program may open it again, as /dev/stdin
                os.fchown(theirs, owner, owner)

    def close_theirs(self) -> None:
        while self.theirs:
            os.close(self.theirs.pop())

    def close(self, *names: str) -> None:
        for name in names or tuple(self.ours):
            if name in self.ours:
                os.close(self.ours.pop(name))


def exchange(
    line: socket.socket,
    *,
    stdin: bytes,
    task: bytes,
    limits: Limits,
    owner: int | None,
    wanted: threading.Event,
    first: bool = True,
) -> Finished:
    """Have a zygote run something, to the end.

    Args:
        line: the line to the zygote.
        stdin: what the program reads.
        task: what `program.run` reads.
        limits: what the run may use.
        owner: the user that the program runs as, where that is not this process's.
        wanted: cleared when nobody waits for the outcome any more.
        first: whether it is the first run of a job: those of one job may share what is costly to make anew.

    Raises:
        ExecutorError: the sandbox failed; nothing is known about the program.
    """
    try:
        pipes = Pipes(owner)
    except OSError as error:
        raise ExecutorError(f"pipes to the sandbox could not be made: {error}") from error
    try:
        return _Exchange(line, pipes, stdin, task, limits).finish(wanted, first=first)
    except (OSError, ValueError) as error:
        raise ExecutorError(f"the sandbox failed during a run: {error}") from error
    finally:
        pipes.close_theirs()
        pipes.close()


class Run:
    """A run, from its order to its report; whoever owns the selector calls `step` for what is ready.

    What it is told is its task, and for as long as it `talks` what `say` adds; else the end of its task is told.
    """

    def __init__(
        self,
        line: socket.socket,
        pipes: Pipes,
        stdin: bytes,
        task: bytes,
        limits: Limits,
        *,
        talks: bool = False,
    ) -> None:
        self._line = line
        self._pipes = pipes
        self._limits = limits
        self._talks = talks
        self._unsent = {"stdin": memoryview(stdin), "task": memoryview(task + b"\n")}
        self._received = {"stdout": bytearray(), "errors": bytearray(), "result": bytearray()}
        self._limit: str | None = None
        self._give_up: float | None = None
        self._started = 0.0
        self._report: Mapping[str, object] | None = None
        output_bytes = limits.output_kib << 10
        self._most = {"stdout": output_bytes, "result": 3 * output_bytes + 4096}  # escaping may lengthen a value

    def start(self, selector: selectors.BaseSelector, *, first: bool) -> None:
        """Give the order; `first`: of its job."""
        self._started = time.monotonic()
        self._order(first)
        selector.register(self._line, selectors.EVENT_READ, (self, "report"))
        for name, descriptor in self._pipes.ours.items():
            writes = name in self._unsent
            selector.register(descriptor, selectors.EVENT_WRITE if writes else selectors.EVENT_READ, (self, name))

    def say(self, selector: selectors.BaseSelector, data: bytes) -> None:
        """Send more."""
        if "task" not in self._pipes.ours:
            return  # it does not listen any more
        if not self._unsent["task"]:
            selector.register(self._pipes.ours["task"], selectors.EVENT_WRITE, (self, "task"))
        self._unsent["task"] = memoryview(bytes(self._unsent["task"]) + data)
        if not self._feed("task", self._pipes.ours["task"]):
            self._sent(selector, "task", self._pipes.ours["task"])

    def hang_up(self, selector: selectors.BaseSelector) -> None:
        """Tell no more."""
        self._talks = False
        if "task" in self._pipes.ours and not self._unsent["task"]:
            self._pipes.close("task")

    def heard(self) -> bytes | None:
        """The next whole line of its result, or None."""
        received = self._received["result"]
        end = received.find(b"\n")
        if end < 0:
            return None
        line = bytes(received[: end + 1])
        del received[: end + 1]
        return line

    @property
    def is_over(self) -> bool:
        """Whether it has ended and all that it wrote has come."""
        return self._report is not None and not set(self._received) & set(self._pipes.ours)

    def stop(self, limit: str) -> None:
        """End it, at a limit."""
        if self._give_up is None:
            self._give_up = time.monotonic() + _GRACE_S
            if self._report is None:
                self._limit = limit
                self._line.send(b"stop")
        elif time.monotonic() >= self._give_up:
            raise ExecutorError(f"the sandbox did not end a run within {_GRACE_S:g} s")

    def _order(self, first: bool) -> None:
        limits = self._limits
        order = {
            "first": first,
            "limits": {
                "cpu_s": limits.cpu_s,
                "memory_mib": limits.memory_mib,
                "processes": limits.processes,
                "output_kib": limits.output_kib,
                "file_mib": limits.file_mib,
            },
        }
        socket.send_fds(self._line, [json.dumps(order).encode()], self._pipes.theirs)
        self._pipes.close_theirs()

    def step(self, selector: selectors.BaseSelector, name: str, descriptor: int) -> None:
        """Read or write what is ready."""
        if name == "report":
            selector.unregister(self._line)
            message = self._line.recv(_LARGEST_MESSAGE)
            if not message:
                raise ExecutorError("the sandbox died during a run")
            self._report = json.loads(message)
        elif name in self._unsent:
            if not self._feed(name, descriptor):
                self._sent(selector, name, descriptor)
        elif not self._collect(name, descriptor):
            self._drop(selector, name, descriptor)

    def _sent(self, selector: selectors.BaseSelector, name: str, descriptor: int) -> None:
        if self._talks and name == "task" and not self._unsent[name]:
            selector.unregister(descriptor)  # until there is more to say
        else:
            self._drop(selector, name, descriptor)

    def _drop(self, selector: selectors.BaseSelector, name: str, descriptor: int) -> None:
        selector.unregister(descriptor)
        self._pipes.close(name)

    def _feed(self, name: str, descriptor: int) -> bool:
        """Write some of what is left; False when that was all, or nobody reads."""
        left = self._unsent[name]
        if left:
            try:
                self._unsent[name] = left = left[os.write(descriptor, left[:_CHUNK_BYTES]) :]
            except BlockingIOError:
                return True
            except BrokenPipeError:
                return False
        return bool(left)

    def _collect(self, name: str, descriptor: int) -> bool:
        """Read some; False at the end."""
        try:
            chunk = os.read(descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return True
        received = self._received[name]
        if name == "errors":
            self._received[name] = (received + chunk)[-_ERRORS_KEPT_BYTES:]
        elif len(received) <= self._most[name]:
            received += chunk
            if len(received) > self._most[name] and self._limit is None:
                self.stop("output")
                self._limit = "output"  # even when the program has just ended
        return bool(chunk)

    def finished(self) -> Finished:
        """What it left behind, when it is over."""
        wall_s = time.monotonic() - self._started
        report = self._report or {}
        if "failed" in report:
            raise ExecutorError(f"the sandbox could not start a program: {report['failed']}")
        limit = report["limit"]
        return Finished(
            stdout=bytes(self._received["stdout"]),
            errors=bytes(self._received["errors"]),
            result=bytes(self._received["result"]),
            limit=self._limit or (str(limit) if limit is not None else None),
            status=int(str(report["status"])),
            cpu_s=float(str(report["cpu_s"])),
            wall_s=wall_s,
        )


class _Exchange(Run):
    """A run by itself."""

    def finish(self, wanted: threading.Event, *, first: bool) -> Finished:
        until = time.monotonic() + self._limits.wall_s
        with selectors.DefaultSelector() as selector:
            self.start(selector, first=first)
            while not self.is_over:
                for key, _ in selector.select(min(max(0.0, until - time.monotonic()), LOOK_S)):
                    self.step(selector, key.data[1], key.fd)
                if time.monotonic() >= until or not wanted.is_set() or self._give_up is not None:
                    self.stop("wall")
                    until = time.monotonic() + LOOK_S
        return self.finished()

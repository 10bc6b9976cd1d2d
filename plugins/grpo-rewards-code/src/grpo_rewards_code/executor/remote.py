"""What executors that send programs elsewhere have in common: the script that is sent, and patience.

A script run is sent as it is. A call is sent in a script that does what the local sandbox does
(`sandbox/inside/program.py`) and prints the result behind a marker that nobody prints by accident. A program that
prints it on purpose has said what it returns, no more: there is nothing to compare with at the service.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

from grpo_rewards_code.executor.outcome import task_of
from grpo_rewards_code.executor.types import ExecutorError, Job, Run, StdinRun
from grpo_rewards_code.sandbox.plan import sources

__all__ = ["NO_SCRIPTS", "BusyError", "Slots", "new_marker", "patiently", "script_of", "split_output"]

T = TypeVar("T")

NO_SCRIPTS = "rows whose tests are code (assertions) are not judged there, only standard input and calls"
"""What is said at launch."""
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 20.0
_NEEDED = ("grpo_rewards_code.executor.values", "grpo_rewards_code.sandbox.inside.program")

_SCRIPT = """\
import json, os, sys, types
sources, task, marker, largest = json.loads({everything!r})
for name, source in sources:
    module = types.ModuleType(name)
    module.__package__ = name.rpartition(".")[0]
    sys.modules[name] = module
    if source is not None:
        exec(compile(source, "<%s>" % name, "exec"), module.__dict__)
outcome, code = sys.modules[{program!r}].execute(task, largest)
sys.stdout.flush()
os.write(1, ("\\n" + marker + json.dumps(outcome)).encode())
os._exit(code)
"""


class BusyError(Exception):
    """A service did not take a request now, but may take it later."""

    def __init__(self, reason: str, pause_s: float | None = None) -> None:
        super().__init__(reason)
        self.pause_s = pause_s


class Slots:
    """How many jobs are elsewhere at a time, in whatever event loop they are awaited."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def here(self) -> asyncio.Semaphore:
        """The running loop's."""
        return self._by_loop.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._count))


def new_marker() -> str:
    """Text that no output has by chance."""
    return f"result-{secrets.token_hex(16)}:"


def script_of(job: Job, run: Run, marker: str) -> str:
    """Python source of a script that does a run and needs nothing but an interpreter of Python 3.8."""
    if isinstance(run, StdinRun):
        return job.program
    known = sources()
    parts = [(name, source) for name, source in known.items() if source is None or name in _NEEDED]
    parts.sort(key=lambda part: (part[1] is not None, part[0]))  # packages first, then values before program
    everything = json.dumps([parts, json.loads(task_of(job, run)), marker, job.limits.output_kib << 10])
    return _SCRIPT.format(everything=everything, program=_NEEDED[1])


def split_output(stdout: str, marker: str) -> tuple[str, bytes]:
    """What the program printed, and the result behind the last marker."""
    printed, found, result = stdout.rpartition(f"\n{marker}")
    return (printed, result.encode("utf-8", "surrogatepass")) if found else (stdout, b"")


async def patiently(attempt: Callable[[], Awaitable[T]], retry_for_s: float, who: str) -> T:
    """Await an attempt again, with growing pauses, for as long as the service says that it is busy."""
    until = time.monotonic() + retry_for_s
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            return await attempt()
        except BusyError as busy:
            wait_s = pause_s if busy.pause_s is None else busy.pause_s
            if time.monotonic() + wait_s > until:
                raise ExecutorError(f"{who}: {busy}, for {retry_for_s:g} s") from busy
        await asyncio.sleep(wait_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

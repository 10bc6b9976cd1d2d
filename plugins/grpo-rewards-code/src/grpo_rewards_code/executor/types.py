"""What an executor is asked and what it answers: programs and inputs go in, data comes back.

Expected answers and comparison rules are never part of a job: an executor, and so a program, cannot know them.

Place in the flow: completion → program, row → problem → **job → run results** → comparison → score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

__all__ = [
    "CallRun",
    "Executor",
    "ExecutorError",
    "ExpressionRun",
    "Job",
    "Limits",
    "Run",
    "RunResult",
    "RunStatus",
    "StdinRun",
]

RunStatus = Literal["ok", "error", "timeout", "memory", "output", "processes", "killed"]
"""`ok`: ended by itself, without an exception and with exit code 0. `error`: an exception or another exit code.
`timeout` (wall or CPU), `memory`, `output` (more than allowed, printed or in files), `processes`: over a limit.
`killed`: died of a signal.
All but `ok` are the program's own fault, so they make a test wrong; what is not is an `ExecutorError`."""


class ExecutorError(Exception):
    """The sandbox or the service failed, not the program: the score is *failed*, never 0.0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one run may use."""

    wall_s: float = 10.0
    """Seconds by the clock."""
    cpu_s: float = 10.0
    """Seconds of processor time."""
    memory_mib: int = 512
    """Address space."""
    processes: int = 16
    """Processes and threads."""
    output_kib: int = 4096
    """Standard output and returned values, together."""
    file_mib: int = 16
    """The largest file it may write, in its own empty folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StdinRun:
    """Run the program as a script."""

    stdin: str
    """What it reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRun:
    """Execute the program as a module, then call a function of it, or a method of its class `Solution`."""

    function: str
    """Name of the function or of the method."""
    arguments: tuple[Any, ...]
    """Positional arguments: JSON values and what `values.py` encodes beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionRun:
    """Execute the program as a module, then `setup`, then evaluate one expression in the same namespace."""

    expression: str
    """Python source of an expression: the left side of an assertion."""
    setup: str = ""
    """Python source of statements before it."""


Run = StdinRun | CallRun | ExpressionRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One program and the runs asked of it. Every run starts from a fresh interpreter state."""

    program: str
    """Python source."""
    runs: Sequence[Run]
    """In order; results come in the same order."""
    limits: Limits = field(default_factory=Limits)
    """Of each run."""
    stop_at_failure: bool = True
    """Whether runs after the first that is not `ok` may be left out: their results are then missing at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What came of one run."""

    status: RunStatus
    """How it ended."""
    stdout: str = ""
    """What it printed; undecodable bytes are replaced. Empty when it is over the limit."""
    value: Any = None
    """What a call or an expression gave, rebuilt from data by `values.py`: exact built-in types only; what has no data
    form is an `Opaque`, equal to nothing."""
    detail: str = ""
    """The end of its error output, or which limit it exceeded; for people."""
    wall_s: float = 0.0
    """How long it took."""


class Executor(Protocol):
    """Runs jobs, several at a time."""

    async def run(self, job: Job) -> Sequence[RunResult]:
        """Run a job; raises `ExecutorError` when that could not be done."""
        ...

    def describe(self) -> str:
        """One line for the launch and for `grpoctl plugins doctor`: where programs run and how isolated."""
        ...

    async def aclose(self) -> None:
        """End everything it started."""
        ...

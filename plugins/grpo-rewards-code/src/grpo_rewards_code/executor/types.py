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
    "Job",
    "Limits",
    "Run",
    "RunResult",
    "RunStatus",
    "ScriptJob",
    "ScriptResult",
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


Run = StdinRun | CallRun


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
    """What a call gave, rebuilt from data by `values.py`: exact built-in types only; what has no data
    form is an `Opaque`, equal to nothing."""
    detail: str = ""
    """The end of its error output, or which limit it exceeded; for people."""
    wall_s: float = 0.0
    """How long it took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptJob:
    """One program and the test code that is to ask it, each in a sandbox of its own."""

    program: str
    """Python source."""
    script: str
    """Python source, of the tests. It never goes where the program is."""
    entry_point: str | None
    """What a function `check(candidate)` of the script is called with."""
    limits: Limits = field(default_factory=Limits)
    """Of each answer of the program in time, of both sides in everything else."""
    checks: int = 1
    """How many answers' time the script itself may take."""
    total_s: float = 120.0
    """Seconds by the clock that all of it may take."""
    go_on: bool = False
    """Whether what follows a failed assertion runs all the same."""
    relative_tolerance: float = 1e-6
    absolute_tolerance: float = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptResult:
    """What came of a script."""

    passed: int
    """Assertions that ran and held."""
    tests: int
    """All of them, as far as is known."""
    reason: str = ""
    """What was wrong first, for a person."""
    unjudged: str | None = None
    """Why the script can judge no program; None where it can."""


class Executor(Protocol):
    """Runs jobs, several at a time."""

    @property
    def runs_scripts(self) -> bool:
        """Whether `run_script` is there: two processes that talk."""
        ...

    async def run_script(self, job: ScriptJob) -> ScriptResult:
        """Run a script; raises `ExecutorError` when that could not be done."""
        ...

    async def run(self, job: Job) -> Sequence[RunResult]:
        """Run a job; raises `ExecutorError` when that could not be done."""
        ...

    def describe(self) -> str:
        """One line for the launch and for `grpoctl plugins doctor`: where programs run and how isolated."""
        ...

    async def aclose(self) -> None:
        """End everything it started."""
        ...

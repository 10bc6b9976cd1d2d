"""Programs in sandboxes of E2B, through its SDK: a sandbox for each job, without internet, ended with the job.

Runs of one job share their sandbox's machine, each in a folder and an interpreter of its own: an earlier run may leave
files or processes to a later one of the same program. See https://e2b.dev/docs for the SDK.
"""

from __future__ import annotations

import contextlib
import logging
import math
import shlex
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import ModuleType
from typing import Any

from grpo_rewards_code.executor.options import E2bOptions
from grpo_rewards_code.executor.outcome import limit_result, read_result, stdin_of
from grpo_rewards_code.executor.remote import (
    NO_SCRIPTS,
    BusyError,
    Slots,
    T,
    new_marker,
    patiently,
    script_of,
    split_output,
)
from grpo_rewards_code.executor.types import ExecutorError, Job, Limits, Run, RunResult, ScriptJob, ScriptResult

__all__ = ["E2bExecutor"]

_LOG = logging.getLogger(__name__)

_GRACE_S = 20.0
"""How much longer than the run itself its command may take."""
_ENVIRONMENT = "PYTHONHASHSEED=0 LANG=C.UTF-8"
_KILLED, _PROCESSOR_TIME, _FILE_SIZE = 128 + 9, 128 + 24, 128 + 25


class E2bExecutor:
    """Runs jobs in sandboxes of E2B."""

    def __init__(self, options: E2bOptions, sdk: ModuleType, workers: int) -> None:
        """`sdk` is the module `e2b`."""
        self._options = options
        self._sdk: Any = sdk
        self._slots = Slots(workers)

    async def run(self, job: Job) -> Sequence[RunResult]:
        """Run a job in a sandbox of its own."""
        results: list[RunResult] = []
        async with self._slots.here(), self._sandbox() as sandbox:
            for number, run in enumerate(job.runs):
                results.append(await self._run_once(sandbox, job, run, f"/tmp/run-{number}"))
                if job.stop_at_failure and results[-1].status != "ok":
                    break
        return results

    @property
    def runs_scripts(self) -> bool:
        """Whether `run_script` is there: processes of this service do not talk to each other."""
        return False

    async def run_script(self, job: ScriptJob) -> ScriptResult:
        """Not there."""
        raise ExecutorError("E2B runs no test code: it takes two processes that talk")

    def describe(self) -> str:
        """Which service, and which of its templates."""
        return (
            f"E2B, template {self._options.template or 'of the service'}: a sandbox without internet for each program; "
            f"{NO_SCRIPTS}"
        )

    async def aclose(self) -> None:
        """Nothing is kept open."""

    @contextlib.asynccontextmanager
    async def _sandbox(self) -> AsyncIterator[Any]:
        sandbox = await self._ask(
            lambda: self._sdk.AsyncSandbox.create(
                template=self._options.template,
                timeout=self._options.sandbox_timeout_s,
                allow_internet_access=False,
                request_timeout=self._options.request_timeout_s,
            )
        )
        try:
            yield sandbox
        finally:
            try:
                await self._ask(lambda: sandbox.kill(request_timeout=self._options.request_timeout_s))
            except ExecutorError as error:
                limit_s = self._options.sandbox_timeout_s
                _LOG.warning("a sandbox of E2B was not ended and will be by the service, in %d s: %s", limit_s, error)

    async def _run_once(self, sandbox: Any, job: Job, run: Run, folder: str) -> RunResult:
        marker = new_marker()
        request_timeout = self._options.request_timeout_s
        script = script_of(job, run, marker).encode("utf-8", "surrogatepass")
        for name, data in (("main.py", script), ("stdin", stdin_of(run))):
            await self._ask(
                lambda name=name, data=data: sandbox.files.write(  # type: ignore[misc]
                    f"{folder}/{name}", data, request_timeout=request_timeout
                )
            )
        started = time.monotonic()
        code, stdout, errors = await self._command(sandbox, _command(folder, job.limits), job.limits)
        return _result(run, job.limits, code, stdout, errors, marker, time.monotonic() - started)

    async def _command(self, sandbox: Any, command: str, limits: Limits) -> tuple[int, str, str]:
        async def attempt() -> tuple[int, str, str]:
            try:
                done = await sandbox.commands.run(command, timeout=limits.wall_s + _GRACE_S)
            except self._sdk.CommandExitException as ended:
                done = ended
            return done.exit_code, done.stdout, done.stderr

        return await self._ask(attempt)

    async def _ask(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Await a call of the SDK; its errors are the service's, and those of a busy one pass."""
        sdk = self._sdk

        async def guarded() -> T:
            try:
                return await attempt()
            except (sdk.RateLimitException, sdk.ServiceBusyException) as error:
                raise BusyError(f"{type(error).__name__}: {error}") from error
            except sdk.AuthenticationException as error:
                raise ExecutorError(f"E2B refuses the key; set E2B_API_KEY ({error})") from error
            except Exception as error:
                raise ExecutorError(f"E2B failed: {type(error).__name__}: {error}") from error

        return await patiently(guarded, self._options.retry_for_s, "E2B")


def _command(folder: str, limits: Limits) -> str:
    """A command line for bash that runs the script within limits and gives back no more than may be."""
    place = shlex.quote(folder)
    kept = limits.output_kib << 10
    limited = " ; ".join(
        [
            f"ulimit -v {limits.memory_mib << 10}",
            f"ulimit -H -t {math.ceil(limits.cpu_s) + 1} ; ulimit -S -t {math.ceil(limits.cpu_s)}",
            f"ulimit -f {max(limits.file_mib << 10, limits.output_kib + 1)}",
            "ulimit -c 0",
            f'exec env -i PATH="$PATH" {_ENVIRONMENT} timeout -s KILL {limits.wall_s:g} python3 -B ../main.py',
        ]
    )
    return (
        f"mkdir -p {place}/work && cd {place}/work && ( {limited} ) < ../stdin > ../stdout 2> ../stderr ; code=$? ; "
        f"head -c {kept + 1} ../stdout ; tail -c 4096 ../stderr >&2 ; exit $code"
    )


def _result(run: Run, limits: Limits, code: int, stdout: str, errors: str, marker: str, wall_s: float) -> RunResult:
    if code in (_KILLED, _PROCESSOR_TIME) and wall_s >= min(limits.wall_s, limits.cpu_s):
        return limit_result("wall" if code == _KILLED else "cpu", limits, wall_s)
    if code == _FILE_SIZE or len(stdout) > limits.output_kib << 10:
        return limit_result("output", limits, wall_s)
    if code > 128:
        return RunResult(status="killed", detail=f"died of signal {code - 128}", wall_s=wall_s)
    if errors.rstrip().endswith("MemoryError"):
        return limit_result("memory", limits, wall_s)
    printed, result = split_output(stdout, marker)
    return read_result(run, limits, code, printed, errors, result, wall_s)

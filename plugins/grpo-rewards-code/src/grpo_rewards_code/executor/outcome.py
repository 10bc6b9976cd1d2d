"""From what a run is to the data that is sent, and from what came back to its result. The same for every executor."""

from __future__ import annotations

import json
import os
import signal

from grpo_rewards_code.executor.types import Job, Limits, Run, RunResult, RunStatus, StdinRun
from grpo_rewards_code.executor.values import decode, encode
from grpo_rewards_code.sandbox.exchange import Finished
from grpo_rewards_code.sandbox.inside.folder import FILES, IN_LARGEST_FILES

__all__ = ["limit_result", "read_result", "stdin_of", "task_of", "to_result"]

_DETAIL = {
    "wall": "stopped after {wall_s:g} s",
    "cpu": "stopped after {cpu_s:g} s of processor time",
    "memory": "used more than {memory_mib} MiB of memory",
    "processes": "had more than {processes} processes and threads",
    "output": "wrote more than {output_kib} KiB",
    "files": f"held more than {IN_LARGEST_FILES} times {{file_mib}} MiB, or {FILES} files, in its folder",
}
_STATUS: dict[str, RunStatus] = {
    "wall": "timeout",
    "cpu": "timeout",
    "memory": "memory",
    "processes": "processes",
    "output": "output",
    "files": "output",
}


def task_of(job: Job, run: Run) -> bytes:
    """What `program.run` reads."""
    task: dict[str, object] = {"program": job.program}
    if isinstance(run, StdinRun):
        task |= {"kind": "stdin"}
    else:
        task |= {"kind": "call", "function": run.function, "arguments": encode(run.arguments)}
    return json.dumps(task).encode()


def stdin_of(run: Run) -> bytes:
    """What the program finds on its standard input."""
    return run.stdin.encode("utf-8", "surrogatepass") if isinstance(run, StdinRun) else b""


def to_result(run: Run, finished: Finished, limits: Limits) -> RunResult:
    """The result of a run on this machine."""
    code = os.waitstatus_to_exitcode(finished.status)
    limit = finished.limit
    if limit is None and _used_up_its_time(-code, finished.cpu_s, limits):
        limit = "cpu"
    if limit is not None:
        return limit_result(limit, limits, finished.wall_s)
    errors = finished.errors.decode("utf-8", "replace")
    if code < 0:
        return RunResult(status="killed", detail=_signal_name(-code), wall_s=finished.wall_s)
    return read_result(
        run, limits, code, finished.stdout.decode("utf-8", "replace"), errors, finished.result, finished.wall_s
    )


def _used_up_its_time(signal_number: int, cpu_s: float, limits: Limits) -> bool:
    """The kernel sends SIGXCPU at the limit, and SIGKILL a second later to who goes on."""
    return signal_number == signal.SIGXCPU or (signal_number == signal.SIGKILL and cpu_s >= limits.cpu_s)


def limit_result(limit: str, limits: Limits, wall_s: float) -> RunResult:
    """The result of a run that exceeded a limit."""
    values = {name: getattr(limits, name) for name in Limits.__slots__}
    return RunResult(status=_STATUS[limit], detail=_DETAIL[limit].format(**values), wall_s=wall_s)


def read_result(
    run: Run, limits: Limits, code: int, stdout: str, errors: str, result: bytes, wall_s: float
) -> RunResult:
    """The result of a run that ended by itself, from its exit code, what it wrote, and what `program` said of it.

    All of this is in the program's hand, so nothing here can be more than an answer to be judged.
    """
    end, text = _read_outcome(result)
    if end in ("memory", "output"):
        return limit_result(end, limits, wall_s)
    if isinstance(run, StdinRun):
        status: RunStatus = "ok" if code == 0 else "error"
        return RunResult(status=status, stdout=stdout, detail=errors or _code(code), wall_s=wall_s)
    if code != 0 or end != "ok" or text is None:
        why = errors or (_code(code) if code else "it ended before there was a value")
        return RunResult(status="error", stdout=stdout, detail=why, wall_s=wall_s)
    try:
        value = decode(text)
    except ValueError as error:
        return RunResult(status="error", stdout=stdout, detail=str(error), wall_s=wall_s)
    return RunResult(status="ok", stdout=stdout, value=value, detail=errors, wall_s=wall_s)


def _read_outcome(result: bytes) -> tuple[str, str | None]:
    try:
        outcome = json.loads(result)
        end, value = outcome["end"], outcome.get("value")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return "none", None
    return str(end), value if isinstance(value, str) else None


def _code(code: int) -> str:
    return f"exit code {code}" if code else ""


def _signal_name(number: int) -> str:
    try:
        return f"died of {signal.Signals(number).name}"
    except ValueError:
        return f"died of signal {number}"

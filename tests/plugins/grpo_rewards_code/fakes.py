"""An executor that runs nothing: it answers each run by a rule of the test, and remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from grpo_rewards_code.executor.types import ExecutorError, Job, Run, RunResult, ScriptJob, ScriptResult, StdinRun
from grpo_rewards_code.executor.values import decode, encode

__all__ = ["FakeExecutor", "answering", "failing"]

Rule = Callable[[str, Run], RunResult]


class FakeExecutor:
    """Answers by a rule of (program, run); a job stops at the first failure when it says so."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.jobs: list[Job] = []
        self.is_closed = False

    async def run(self, job: Job) -> Sequence[RunResult]:
        self.jobs.append(job)
        await asyncio.sleep(0)
        results: list[RunResult] = []
        for run in job.runs:
            results.append(self.rule(job.program, run))
            if job.stop_at_failure and results[-1].status != "ok":
                break
        return results

    @property
    def runs_scripts(self) -> bool:
        return False

    async def run_script(self, job: ScriptJob) -> ScriptResult:
        raise ExecutorError("nothing talks here")

    def describe(self) -> str:
        return "fake: nothing runs"

    async def aclose(self) -> None:
        self.is_closed = True


def answering(program: str, run: Run) -> RunResult:
    """Runs the test's own source in this process: for programs that this test file wrote, and no other."""
    names: dict[str, Any] = {"__name__": "solution"}
    try:
        if isinstance(run, StdinRun):
            printed: list[str] = []
            names |= {"read": lambda: run.stdin, "write": printed.append}
            exec(program, names)  # noqa: S102
            return RunResult(status="ok", stdout="".join(printed), wall_s=0.1)
        exec(program, names)  # noqa: S102
        return RunResult(status="ok", value=decode(encode(names[run.function](*run.arguments))), wall_s=0.1)
    except Exception as error:  # noqa: BLE001 - whatever the program does is its result
        return RunResult(status="error", detail=f"{type(error).__name__}: {error}", wall_s=0.1)


def failing(program: str, run: Run) -> RunResult:
    raise ExecutorError("the service is away")

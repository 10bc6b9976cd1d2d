"""Programs in sandboxes on this machine, several at a time.

Place in the flow: job → **local executor** → sandbox → program → run results.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from grpo_rewards_code.executor.outcome import stdin_of, task_of, to_result
from grpo_rewards_code.executor.talking import talk_in
from grpo_rewards_code.executor.types import ExecutorError, Job, RunResult, ScriptJob, ScriptResult
from grpo_rewards_code.sandbox.choose import describe
from grpo_rewards_code.sandbox.plan import Plan
from grpo_rewards_code.sandbox.process import Sandbox

__all__ = ["LocalExecutor"]

J = TypeVar("J", Job, ScriptJob)
R = TypeVar("R")


class LocalExecutor:
    """Runs jobs on this machine.

    Sandboxes are started when they are needed, serve one job after another, and are ended with the last job that is
    waiting: between batches nothing is left running.
    """

    def __init__(self, plan: Plan, workers: int) -> None:
        self._plan = plan
        self._workers = workers
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="sandbox")
        self._idle: list[Sandbox] = []
        self._unfinished_jobs = 0
        self._lock = threading.Lock()

    @property
    def runs_scripts(self) -> bool:
        """Whether `run_script` is there."""
        return True

    async def run(self, job: Job) -> Sequence[RunResult]:
        """Run a job, when its turn comes."""
        return await self._in_turn(self._run, job)

    async def run_script(self, job: ScriptJob) -> ScriptResult:
        """Run a script and the program that it asks, when their turn comes."""
        return await self._in_turn(self._run_script, job)

    async def _in_turn(self, work: Callable[[J, threading.Event], R], job: J) -> R:
        wanted = threading.Event()
        wanted.set()
        try:
            future = self._threads.submit(work, job, wanted)
        except RuntimeError as error:  # shut down, or no thread can be made
            raise ExecutorError(f"the job could not be taken on: {error}") from error
        with self._lock:
            self._unfinished_jobs += 1
        future.add_done_callback(lambda _: self._end_when_idle())  # before the result reaches who waits for it
        try:
            return await asyncio.wrap_future(future)
        finally:
            wanted.clear()  # a cancelled job ends at once

    def describe(self) -> str:
        """What confines programs, and how many run at a time."""
        return f"{describe(self._plan)}; {self._workers} at a time"

    async def aclose(self) -> None:
        """Wait for the jobs that run, and take no more."""
        await asyncio.to_thread(self._threads.shutdown, wait=True, cancel_futures=True)

    def _end_when_idle(self) -> None:
        with self._lock:
            self._unfinished_jobs -= 1
            ended = [] if self._unfinished_jobs else self._idle
            self._idle = self._idle if self._unfinished_jobs else []
        for sandbox in ended:
            sandbox.close()

    def _run(self, job: Job, wanted: threading.Event) -> list[RunResult]:
        results: list[RunResult] = []
        sandbox: Sandbox | None = None
        try:
            for run in job.runs:
                if not wanted.is_set():
                    raise ExecutorError("the job was cancelled")
                sandbox = sandbox or self._take()
                task = task_of(job, run)
                first = not results
                finished = sandbox.run(stdin=stdin_of(run), task=task, limits=job.limits, wanted=wanted, first=first)
                results.append(to_result(run, finished, job.limits))
                if self._plan.mode == "single":
                    sandbox.close()
                    sandbox = None
                if job.stop_at_failure and results[-1].status != "ok":
                    break
        except BaseException:
            if sandbox is not None:
                sandbox.close()
            raise
        if sandbox is not None:
            self._give_back(sandbox)
        return results

    def _run_script(self, job: ScriptJob, wanted: threading.Event) -> ScriptResult:
        taken: list[Sandbox] = []
        try:
            taken += [self._take()]
            taken += [self._take()]
            result = talk_in(taken[0], taken[1], job, wanted)
        except BaseException:
            for sandbox in taken:
                sandbox.close()
            raise
        for sandbox in taken:
            if self._plan.mode == "single":
                sandbox.close()
            else:
                self._give_back(sandbox)
        return result

    def _take(self) -> Sandbox:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return Sandbox(self._plan)

    def _give_back(self, sandbox: Sandbox) -> None:
        with self._lock:
            self._idle.append(sandbox)

"""Programs in sandboxes on this machine, several at a time.

Place in the flow: job → **local executor** → sandbox → program → run results.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from grpo_rewards_code.executor.outcome import stdin_of, task_of, to_result
from grpo_rewards_code.executor.types import ExecutorError, Job, Run, RunResult
from grpo_rewards_code.sandbox.choose import describe
from grpo_rewards_code.sandbox.plan import Plan
from grpo_rewards_code.sandbox.process import Sandbox

__all__ = ["LocalExecutor"]


class LocalExecutor:
    """Runs jobs on this machine. Sandboxes are started when they are first needed and stay for later jobs."""

    def __init__(self, plan: Plan, workers: int) -> None:
        self._plan = plan
        self._workers = workers
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="sandbox")
        self._idle: list[Sandbox] = []
        self._lock = threading.Lock()

    async def run(self, job: Job) -> Sequence[RunResult]:
        """Run a job in one of the sandboxes, which it has to itself meanwhile."""
        wanted = threading.Event()
        wanted.set()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, job, wanted)
        finally:
            wanted.clear()  # a cancelled job ends at once

    def describe(self) -> str:
        """What confines programs, and how many run at a time."""
        return f"{describe(self._plan)}; {self._workers} at a time"

    async def aclose(self) -> None:
        """End the sandboxes."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            idle, self._idle = self._idle, []
        for sandbox in idle:
            sandbox.close()

    def _run(self, job: Job, wanted: threading.Event) -> list[RunResult]:
        results: list[RunResult] = []
        for run in job.runs:
            if not wanted.is_set():
                raise ExecutorError("the job was cancelled")
            results.append(self._run_once(job, run, wanted))
            if job.stop_at_failure and results[-1].status != "ok":
                break
        return results

    def _run_once(self, job: Job, run: Run, wanted: threading.Event) -> RunResult:
        sandbox = self._take()
        try:
            finished = sandbox.run(stdin=stdin_of(run), task=task_of(job, run), limits=job.limits, wanted=wanted)
        except BaseException:
            sandbox.close()
            raise
        self._give_back(sandbox)
        return to_result(run, finished, job.limits)

    def _take(self) -> Sandbox:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return Sandbox(self._plan)

    def _give_back(self, sandbox: Sandbox) -> None:
        if self._plan.mode == "single":
            sandbox.close()
            return
        with self._lock:
            self._idle.append(sandbox)

"""Killable workers: rewards that can hang or crash run in processes that cost nothing to lose.

One thread a worker asks and waits, so every wait is a plain one with a limit: the budget of an answer, counted from
the moment its function is called, and the call's outer deadline, counted from the moment a worker has it. Time in the
queue counts for nothing. Whatever ends a worker, a new one takes its place, and only the call it had is affected.
Nothing uses signals' alarms, which work in the main thread alone.

Place in the flow: completions → **workers** → outcomes.
"""

from __future__ import annotations

import logging
import pickle
import socket
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from queue import Empty, SimpleQueue

from grpo_core.errors import Problem, RecipeError
from grpo_core.machine import WAITING_A_CORE, available_cores
from grpo_core.plugins.faults import describe
from grpo_core.reward.call import CallResult, failed_call, too_long
from grpo_core.reward.wire import Nursery, Question, WorkerTarget, decode_result, read_frame, write_frame
from grpo_core.reward.worker import started_at
from grpo_core.reward.zygote_process import ZygoteGoneError, ZygoteProcess, describe_status
from grpo_core.types import BuildContext

__all__ = ["Job", "WorkerPool", "workers_for"]

_LOG = logging.getLogger("grpo_core")
_JOIN_LIMIT_S = 5.0


def workers_for(chosen: int | None, *, local_world_size: int = 1) -> int:
    """How many workers a process has: as chosen, or else its part of the cores; raises `RecipeError` for more than can
    be of use."""
    cores = available_cores()
    if chosen is None:
        return max(1, cores // local_world_size)
    most = WAITING_A_CORE * cores
    if chosen > most:
        message = (
            f"{chosen} processes on a machine with {cores} cores; use at most {most}, which is {WAITING_A_CORE} a core"
        )
        raise RecipeError([Problem(path="scoring.workers", message=message)])
    return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One call that a worker is to make."""

    reward: str
    """Which of the pool's rewards."""
    arguments: Mapping[str, object]
    """By parameter name; plain values."""
    count: int
    """How many completions."""
    records: bool
    """Whether the function takes `record`."""
    budget_s: float | None
    """An answer that takes longer is wrong: `over_budget`."""
    deadline_s: float
    """A call that takes longer has failed."""
    over_budget: float = 0.0
    """The score of a wrong answer."""


class WorkerPool:
    """Workers for a run's rewards, forked as jobs come in."""

    def __init__(self, targets: Mapping[str, WorkerTarget], *, workers: int, context: BuildContext) -> None:
        """Start the zygote; raises `RewardError` when it cannot import a target."""
        self._nursery = Nursery(targets=dict(targets), context=context, import_path=tuple(sys.path))
        self._zygote = ZygoteProcess(self._nursery)
        self._limit = workers
        self._jobs: SimpleQueue[tuple[Job, Future[CallResult]] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._may_restart = True
        self._closed = False

    def begin_step(self) -> None:
        """Allow the zygote to be restarted once more."""
        self._may_restart = True

    def submit(self, job: Job) -> Future[CallResult]:
        """Queue a job."""
        future: Future[CallResult] = Future()
        self._jobs.put((job, future))
        if len(self._threads) < self._limit:
            thread = threading.Thread(target=self._serve, name=f"reward-worker-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def close(self) -> None:
        """Kill all workers and the zygote; jobs that wait are cancelled."""
        self._closed = True
        with suppress(Empty):
            while (item := self._jobs.get_nowait()) is not None:
                item[1].cancel()
        with self._lock:
            self._zygote.close()
        for _thread in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(_JOIN_LIMIT_S)

    def _serve(self) -> None:
        worker: _Worker | None = None
        while (item := self._jobs.get()) is not None:
            job, future = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result, worker = self._run(job, worker)
            except BaseException as error:  # noqa: BLE001 - whoever waits for the future gets it, or would wait for ever
                future.set_exception(error)
            else:
                future.set_result(result)
        if worker is not None:
            worker.line.close()

    def _run(self, job: Job, worker: _Worker | None) -> tuple[CallResult, _Worker | None]:
        """The job's result, and the worker for the next job where it is still fit for one."""
        try:
            arguments = pickle.dumps(dict(job.arguments))
        except Exception as error:  # noqa: BLE001 - columns hold whatever a dataset holds, and pickling runs its code
            return failed_call(f"its columns cannot be sent to a worker: {describe(error)}", job.count), worker
        question = Question(reward=job.reward, arguments=arguments, count=job.count, records=job.records)
        while True:
            fresh = worker is None
            try:
                worker = worker or self._hire()
            except ZygoteGoneError:
                return failed_call("got no worker: the process that starts them died twice in a step", job.count), None
            answer = worker.ask(question, job)
            if isinstance(answer, CallResult):
                return answer, worker
            how, worker = worker.bury(), None
            if fresh or how is None or answer not in (_Lost.BEFORE_START, _Lost.DIED):
                return _verdict(answer, how, job), None
            # What earlier answers left in a worker (threads, memory) can end it: this answer is judged in a fresh one.

    def _hire(self) -> _Worker:
        """A new worker; the zygote is restarted for it when it died, once a step."""
        with self._lock:
            try:
                pid, line = self._zygote.fork()
            except ZygoteGoneError:
                if self._closed or not self._may_restart:
                    raise
                self._may_restart = False
                _LOG.warning("the process that starts reward workers died, and with it their calls; it is restarted")
                self._zygote.close()
                self._zygote = ZygoteProcess(self._nursery)
                pid, line = self._zygote.fork()
            return _Worker(pid=pid, line=line, zygote=self._zygote)


class _Lost(Enum):
    """Why a worker gave no answer."""

    BEFORE_START = auto()
    DIED = auto()
    GARBLED = auto()
    BUDGET = auto()
    DEADLINE = auto()


@dataclass(frozen=True, slots=True)
class _Worker:
    pid: int
    line: socket.socket
    zygote: ZygoteProcess

    def ask(self, question: Question, job: Job) -> CallResult | _Lost:
        """Have it make the call, and wait as long as the job allows."""
        until = limit = time.monotonic() + job.deadline_s
        try:
            write_frame(self.line, pickle.dumps(question), until)
            started = read_frame(self.line, until)
            if started is None:
                return _Lost.BEFORE_START
            if job.budget_s is not None:
                limit = min(until, started_at(started) + job.budget_s)
            frame = read_frame(self.line, limit)
            if frame is None:
                return _Lost.DIED
            result, elapsed_s = decode_result(frame)
        except TimeoutError:
            return _Lost.DEADLINE if limit == until else _Lost.BUDGET
        except OSError:
            return _Lost.BEFORE_START
        except (ValueError, KeyError, TypeError):  # something else than this worker's loop wrote on its line
            return _Lost.GARBLED
        over = job.budget_s is not None and elapsed_s > job.budget_s
        return _wrong(job) if over else result

    def bury(self) -> str | None:
        """End it, and say in words how it had ended; None when its zygote is gone too."""
        self.line.close()
        try:
            return describe_status(self.zygote.end(self.pid))
        except ZygoteGoneError:
            return None


def _verdict(lost: _Lost, how: str | None, job: Job) -> CallResult:
    match lost:
        case _Lost.BUDGET:
            return _wrong(job)
        case _Lost.DEADLINE:
            return failed_call(too_long(job.deadline_s), job.count)
        case _Lost.GARBLED:
            return failed_call("its worker's answer was garbled: something else wrote to its socket", job.count)
        case _Lost.BEFORE_START | _Lost.DIED:
            when = " before the call" if lost is _Lost.BEFORE_START else ""
            together = "together with the process that starts workers"
            return failed_call(f"its worker died{when}: {how or together}", job.count)


def _wrong(job: Job) -> CallResult:
    """An answer that takes longer than its budget is wrong, or a policy would escape by hanging its judge."""
    return CallResult(outcomes=(job.over_budget,) * job.count)

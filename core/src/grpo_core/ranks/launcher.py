"""Starts the processes of a run on this machine with torch's elastic agent, and waits for them.

    grpoctl → start → agent → python -m grpo_core.worker RUN, once a rank

The agent makes the store that ranks meet at, and ends the others when one ends badly. What is added here: ranks know
who started them, and do not outlive it; how a process died is told to the others before they are ended; Ctrl-C, SIGTERM
and SIGHUP are passed on; and the exit code is that of the run.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from types import FrameType
from typing import Any

import torch.distributed as dist
from torch.distributed.elastic.agent.server.api import RunResult, WorkerGroup, WorkerSpec
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException

from grpo_core.errors import GrpoError, RankError
from grpo_core.orphans import LAUNCHER
from grpo_core.ranks.meeting import Meeting
from grpo_core.ranks.place import Processes
from grpo_core.ranks.store import Store, death_key

__all__ = ["start"]

_WORKER = "grpo_core.worker"
_RENDEZVOUS_LIMIT_S = 900
_TELL_LIMIT_S = 3
_INTERRUPTED = 130
_SIGNAL = "signal"
_GLOO = "GLOO_SOCKET_IFNAME"
_KILL_AT = 3
"""The Ctrl-C that waits for nothing any more."""


def start(processes: Processes, arguments: Sequence[str]) -> int:
    """Run the worker module with `arguments` in every process of this machine; the exit code of the run."""
    address, port = processes.meeting_point() if processes.nodes > 1 else ("127.0.0.1", _free_port())
    run_id = "grpo" if processes.nodes > 1 else secrets.token_hex(8)
    meeting = Meeting(address, port, processes.node_rank, processes.nodes, run_id, _RENDEZVOUS_LIMIT_S)
    spec = WorkerSpec(
        role="rank",
        local_world_size=processes.per_node,
        entrypoint=sys.executable,
        args=(*_path_flags(), "-m", _WORKER, *arguments),
        rdzv_handler=meeting,
        max_restarts=0,
        monitor_interval=0.1,
        master_addr=address,
        master_port=port,
    )
    with _agents_environment(alone=processes.nodes == 1):
        agent = _Agent(spec, DefaultLogsSpecs(log_dir=os.devnull))
        with agent.passing_signals():
            try:
                result = agent.run()
            except SignalException as error:
                return 128 + int(error.sigval)
            except RuntimeError as error:
                raise RankError(
                    f"machine {processes.node_rank} did not meet the others at {address}, port {port}: {error}",
                    hint="start the same command with the same --rdzv-endpoint, an address of machine 0 and a free "
                    f"port there, on all {processes.nodes} machines",
                ) from error
    return _exit_code(result, interrupted=agent.interrupted)


class _Agent(LocalElasticAgent):
    """torch's agent, which tells how processes died and passes signals on."""

    interrupted = False
    """Whether it was asked to end the run."""

    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        # Before the agent looks: as soon as it sees a process that ended, it ends all others.
        for worker in worker_group.workers:
            how = _end_of(worker.id)
            if how is not None:
                if how.startswith(_SIGNAL):
                    _end_group(worker.id)
                self._tell(worker_group, worker.global_rank, how)
        result: RunResult = super()._monitor_workers(worker_group)
        return result

    def _tell(self, worker_group: WorkerGroup, rank: int, how: str) -> None:
        address, port = str(worker_group.master_addr), int(worker_group.master_port or 0)
        limit = timedelta(seconds=_TELL_LIMIT_S)
        try:
            inner = dist.TCPStore(address, port, is_master=False, wait_for_workers=False, timeout=limit)
            Store(inner).set(death_key(rank), how)
        except (RuntimeError, RankError):
            return  # machine 0 is gone, and with it whoever could have been told

    @contextmanager
    def passing_signals(self) -> Iterator[None]:
        """Pass SIGINT, SIGTERM and SIGHUP on to the processes, which end the run as they should."""
        received = 0

        def handle(number: int, frame: FrameType | None) -> None:
            nonlocal received
            if number == signal.SIGHUP:
                if received:
                    return  # a terminal that closes may say it twice, and nobody is in a hurry
                number = signal.SIGTERM
            received += 1
            self.interrupted = True
            for process in self._pcontext.pids().values() if self._pcontext else ():
                if _end_of(process) is None:
                    os.kill(process, signal.SIGKILL if received >= _KILL_AT else number)
            if self._pcontext is None:
                raise KeyboardInterrupt

        passed = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
            passed.append(signal.SIGHUP)
        before = {number: signal.signal(number, handle) for number in passed}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def _agents_environment(*, alone: bool) -> Iterator[None]:
    """The ranks say what happened: torch's words about processes that ended would only follow theirs. And the agent's
    own handlers of signals that are passed on, which end a run at once, stay away."""
    logger = logging.getLogger("torch.distributed.elastic")
    level, signals = logger.level, "TORCHELASTIC_SIGNALS_TO_HANDLE"
    before: dict[str, Any] = {name: os.environ.get(name) for name in (signals, "TORCH_CPP_LOG_LEVEL", LAUNCHER, _GLOO)}
    logger.setLevel(logging.CRITICAL)
    os.environ[signals] = "SIGQUIT"
    os.environ[LAUNCHER] = str(os.getpid())
    if alone:  # gloo would listen at whatever this machine's name leads to
        os.environ.setdefault(_GLOO, "lo0" if sys.platform == "darwin" else "lo")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def _path_flags() -> tuple[str, ...]:
    """Ranks import from where this process does: `-m` alone puts the working folder before all libraries."""
    return () if os.getcwd() in map(os.path.abspath, sys.path[:1]) else ("-P",)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _end_of(pid: int) -> str | None:
    """How a child process ended, in words, leaving it to the agent to collect; None while it runs."""
    try:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None  # collected already
    if ended is None:
        return None
    kind = "exit code" if ended.si_code == os.CLD_EXITED else _SIGNAL
    return f"{kind} {ended.si_status}"


def _end_group(leader: int) -> None:
    """Kill what a process left behind in its group. It has not been collected, so the number is still its own."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _exit_code(result: RunResult, *, interrupted: bool) -> int:
    """That of the process that ended first among those that ended badly. Death by a signal is a failed run, unless the
    run was asked to end: a process that has restored its handlers dies of a second Ctrl-C."""
    if not result.is_failed():
        return 0
    first = min(result.failures.values(), key=lambda failure: failure.timestamp)
    if first.exitcode > 0:
        return first.exitcode
    return _INTERRUPTED if interrupted else GrpoError.exit_code

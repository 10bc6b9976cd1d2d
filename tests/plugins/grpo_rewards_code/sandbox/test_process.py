"""A sandbox that fails is an error of the executor, whoever's fault the failure looks like."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from grpo_rewards_code.executor.local import LocalExecutor
from grpo_rewards_code.executor.types import CallRun, ExecutorError, Job, Limits, StdinRun
from grpo_rewards_code.sandbox import exchange
from grpo_rewards_code.sandbox.layout import find_layout
from grpo_rewards_code.sandbox.plan import Plan, make_plan
from grpo_rewards_code.sandbox.process import Sandbox
from tests.plugins.grpo_rewards_code.places import MODES, plan_for
from tests.processes import below

_SLEEP = Job(program="import time\ntime.sleep(1000)", runs=[StdinRun(stdin="")], limits=Limits(wall_s=500.0))


@pytest.fixture(params=MODES)
def plan(request: pytest.FixtureRequest) -> Plan:
    return plan_for(request.param)


def _run(plan: Plan, job: Job) -> object:
    return asyncio.run(LocalExecutor(plan, workers=1).run(job))


def test_an_interpreter_that_has_gone_is_not_the_program_s_fault(plan: Plan) -> None:
    gone = dataclasses.replace(plan, python=("/nowhere/python", *plan.python[1:]))
    with pytest.raises(ExecutorError, match=r"a sandbox could not be started: .*No such file"):
        _run(gone, _SLEEP)


def test_processes_that_cannot_be_made_are_not_the_program_s_fault(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(ExecutorError, match="Resource temporarily unavailable"):
        _run(plan, _SLEEP)


def test_descriptors_that_cannot_be_made_are_not_the_program_s_fault(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> tuple[int, int]:
        raise OSError(errno.EMFILE, "Too many open files")

    sandbox = Sandbox(plan)
    wanted = threading.Event()
    wanted.set()
    with monkeypatch.context() as patch:
        patch.setattr(os, "pipe", refuse)
        with pytest.raises(ExecutorError, match="Too many open files"):
            sandbox.run(stdin=b"", task=b"{}", limits=Limits(), wanted=wanted)
    sandbox.close()


def test_a_sandbox_that_is_killed_during_a_run_is_not_the_program_s_fault(plan: Plan) -> None:
    sandbox = Sandbox(plan)
    killer = threading.Timer(0.5, lambda: _kill_family(sandbox._process.pid))
    killer.start()
    wanted = threading.Event()
    wanted.set()
    with pytest.raises(ExecutorError, match=r"the sandbox (died|failed) during a run"):
        sandbox.run(
            stdin=b"",
            task=b'{"kind": "stdin", "program": "import time\\ntime.sleep(1000)"}',
            limits=Limits(wall_s=100.0),
            wanted=wanted,
        )
    sandbox.close()


def test_a_job_after_a_sandbox_that_died_gets_a_new_one(plan: Plan) -> None:
    others = set(below())

    async def both() -> str:
        executor = LocalExecutor(plan, workers=1)
        first = asyncio.create_task(executor.run(_SLEEP))
        second = asyncio.create_task(executor.run(Job(program="print(1)", runs=[StdinRun(stdin="")])))
        while not (family := [pid for pid in below() if pid not in others]):
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        # Parents first: a sandbox that outlives its program says that it was killed.
        for pid in [pid for pid in below() if pid not in others] or family:
            _kill(pid)
        with pytest.raises(ExecutorError):
            await first
        return (await second)[0].stdout

    assert asyncio.run(both()) == "1\n"


def test_a_sandbox_that_does_not_answer_is_given_up_and_killed(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_GRACE_S", 0.5)
    sandbox = Sandbox(plan)
    stopped = list(below(sandbox._process.pid)) or [sandbox._process.pid]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    wanted = threading.Event()
    wanted.set()
    with pytest.raises(ExecutorError, match=r"did not end a run within 0.5 s"):
        sandbox.run(stdin=b"", task=b"{}", limits=Limits(wall_s=0.3), wanted=wanted)
    for pid in stopped:
        _kill(pid)
    sandbox.close()


def test_a_task_that_cannot_be_read_is_reported(plan: Plan) -> None:
    sandbox = Sandbox(plan)
    wanted = threading.Event()
    wanted.set()
    with pytest.raises(ExecutorError, match="could not start a program: JSONDecodeError"):
        sandbox.run(stdin=b"", task=b"no task", limits=Limits(), wanted=wanted)
    sandbox.close()


def test_import_folders_can_be_imported_from_and_nothing_else(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "extra_module.py").write_text("answer = 42")
    layout = find_layout(None, [str(tmp_path)])
    plan = make_plan("landlock", "alone", layout, [str(tmp_path)], None)
    plan_for("alone")
    program = (
        "def f(name):\n    try:\n        return __import__(name).answer\n    except ImportError:\n        return None"
    )
    runs = [CallRun(function="f", arguments=(name,)) for name in ("extra_module", "pytest", "grpo_core")]
    results = asyncio.run(LocalExecutor(plan, workers=1).run(Job(program=program, runs=runs)))
    assert [result.value for result in results] == [42, None, None]


def _kill_family(root: int) -> None:
    for pid in [root, *below(root)]:
        _kill(pid)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        time.sleep(0)

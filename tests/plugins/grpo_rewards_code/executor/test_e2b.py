"""The E2B executor on a stand-in for the SDK's few calls, which runs the same command lines with bash here."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from grpo_core.errors import RewardError
from grpo_rewards_code.executor.e2b import E2bExecutor
from grpo_rewards_code.executor.make import make_executor
from grpo_rewards_code.executor.options import E2bOptions, ExecutorOptions
from grpo_rewards_code.executor.types import CallRun, ExecutorError, Job, Limits, Run, RunResult, StdinRun

_SUM = "a, b = map(int, input().split())\nprint(a + b)"


class SandboxException(Exception):
    pass


class RateLimitException(SandboxException):
    pass


class ServiceBusyException(Exception):
    pass


class AuthenticationException(Exception):
    pass


@dataclass
class CommandResult:
    stdout: str
    stderr: str
    exit_code: int


@dataclass
class CommandExitException(SandboxException, CommandResult):
    pass


@dataclass
class Service:
    """What the stand-in does and saw."""

    folder: Path
    errors: dict[str, list[Exception]] = field(default_factory=dict)
    """Call -> what it raises, in turn."""
    created: list[dict[str, Any]] = field(default_factory=list)
    ended: int = 0

    def sdk(self) -> ModuleType:
        """The module `e2b`."""
        module: Any = ModuleType("e2b")
        for each in (RateLimitException, ServiceBusyException, AuthenticationException, CommandExitException):
            setattr(module, each.__name__, each)
        service = self

        class AsyncSandbox:
            files = commands = property(lambda self: self)

            @staticmethod
            async def create(**options: Any) -> Any:
                service.fail("create")
                service.created.append(options)
                return AsyncSandbox()

            async def write(self, path: str, data: bytes, request_timeout: float) -> None:
                service.fail("write")
                target = Path(service.place(path))
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)

            async def run(self, command: str, timeout: float) -> CommandResult:
                service.fail("run")
                line = ["bash", "-c", service.place(command)]
                done = await asyncio.to_thread(subprocess.run, line, capture_output=True, timeout=timeout)
                result = (done.stdout.decode(), done.stderr.decode(), done.returncode)
                if done.returncode:
                    raise CommandExitException(*result)
                return CommandResult(*result)

            async def kill(self, request_timeout: float) -> bool:
                service.fail("kill")
                service.ended += 1
                return True

        module.AsyncSandbox = AsyncSandbox
        return module  # type: ignore[no-any-return]

    def place(self, text: str) -> str:
        return text.replace("/tmp/run-", f"{self.folder}/run-")

    def fail(self, call: str) -> None:
        if self.errors.get(call):
            raise self.errors[call].pop(0)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return Service(tmp_path)


def _run(service: Service, program: str, *runs: Run, limits: Limits | None = None, retry_for_s: float = 10.0) -> Any:
    executor = E2bExecutor(E2bOptions(template="python", retry_for_s=retry_for_s), service.sdk(), workers=2)
    job = Job(program=program, runs=runs, limits=limits or Limits())
    results: list[RunResult] = list(asyncio.run(executor.run(job)))
    asyncio.run(executor.aclose())
    return results


def test_a_job_gets_one_sandbox_without_internet_which_is_ended(service: Service) -> None:
    results = _run(service, _SUM, StdinRun(stdin="3 4"), StdinRun(stdin="1 1"))
    assert [(result.status, result.stdout) for result in results] == [("ok", "7\n"), ("ok", "2\n")]
    (options,) = service.created
    assert (options["template"], options["allow_internet_access"], options["timeout"]) == ("python", False, 600)
    assert service.ended == 1


def test_calls_give_values(service: Service) -> None:
    (result,) = _run(
        service, "def f(x):\n    print('hi')\n    return {x: (1,)}", CallRun(function="f", arguments=("é",))
    )
    assert (result.status, result.value, result.stdout) == ("ok", {"é": (1,)}, "hi\n")


@pytest.mark.parametrize(
    ("program", "status", "says"),
    [
        ("raise ValueError('no')", "error", "ValueError: no"),
        ("raise MemoryError", "memory", "512 MiB"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "killed", "signal 11"),
        ("import time\ntime.sleep(100)", "timeout", "stopped after 1 s"),
        ("while True:\n    pass", "timeout", "of processor time"),
        ("print('x' * 10**7)", "output", "4096 KiB"),
        ("import os\nprint(sorted(set(os.environ) - {'PATH', 'LC_CTYPE', '_', 'PWD', 'SHLVL'}))", "ok", ""),
    ],
)
def test_a_program_that_fails_says_how(service: Service, program: str, status: str, says: str) -> None:
    limits = Limits(wall_s=1.0) if "sleep" in program else Limits(wall_s=30.0, cpu_s=1.0)
    (result,) = _run(service, program, StdinRun(stdin=""), limits=limits)
    assert (result.status, says in result.detail) == (status, True), result
    assert "ok" not in status or result.stdout == "['LANG', 'PYTHONHASHSEED']\n"


def test_runs_after_a_failure_are_left_out(service: Service) -> None:
    assert [each.status for each in _run(service, _SUM, StdinRun(stdin="x"), StdinRun(stdin="1 1"))] == ["error"]


@pytest.mark.parametrize("error", [RateLimitException("slow down"), ServiceBusyException("no capacity")])
def test_a_busy_service_is_asked_again(service: Service, error: Exception) -> None:
    service.errors = {"create": [error], "run": [error]}
    assert _run(service, _SUM, StdinRun(stdin="1 1"))[0].stdout == "2\n"


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        ("create", AuthenticationException("bad key"), "refuses the key; set E2B_API_KEY"),
        ("create", SandboxException("template not found"), "template not found"),
        ("write", OSError("no route"), "E2B failed: OSError: no route"),
        ("run", SandboxException("the sandbox is gone"), "the sandbox is gone"),
        ("run", RateLimitException("slow down"), "slow down, for 0 s"),
    ],
)
def test_a_service_that_fails_is_an_error_of_the_executor(
    service: Service, call: str, error: Exception, says: str
) -> None:
    service.errors = {call: [error]}
    with pytest.raises(ExecutorError) as caught:
        _run(service, _SUM, StdinRun(stdin="1 1"), retry_for_s=0.0)
    assert says in str(caught.value)
    assert service.ended == len(service.created)


def test_a_sandbox_that_cannot_be_ended_costs_a_warning_not_the_result(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    service.errors = {"kill": [SandboxException("gone")]}
    assert _run(service, _SUM, StdinRun(stdin="1 1"))[0].stdout == "2\n"
    assert "will be by the service, in 600 s" in caplog.text


def test_the_description_names_the_service(service: Service) -> None:
    assert E2bExecutor(E2bOptions(), service.sdk(), workers=1).describe().startswith("E2B, template of the service")


def test_without_the_sdk_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "e2b", None)
    with pytest.raises(RewardError, match="e2b cannot be imported") as caught:
        make_executor(ExecutorOptions(kind="e2b"))
    assert "pip install 'grpo-rewards-code[e2b]'" in str(caught.value)


def test_with_the_sdk_the_executor_is_made(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "e2b", service.sdk())
    assert isinstance(make_executor(ExecutorOptions(kind="e2b")), E2bExecutor)

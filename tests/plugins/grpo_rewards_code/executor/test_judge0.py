from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator, Sequence

import pytest

from grpo_core.errors import RewardError
from grpo_rewards_code.executor.make import make_executor
from grpo_rewards_code.executor.options import ExecutorOptions
from grpo_rewards_code.executor.types import (
    CallRun,
    ExecutorError,
    Job,
    Limits,
    Run,
    RunResult,
    StdinRun,
)
from tests.plugins.grpo_rewards_code.executor.judge0_server import Hiccup, Judge0Server, serve_judge0

_SUM = "a, b = map(int, input().split())\nprint(a + b)"
_QUICK = {"poll_interval_s": 0.01, "retry_for_s": 20.0, "request_timeout_s": 10.0}


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[Judge0Server]:
    with serve_judge0() as running:
        yield running


def _run(server: Judge0Server, program: str, *runs: Run, job: object = None, **options: object) -> list[RunResult]:
    limits = job if isinstance(job, Limits) else Limits()
    return list(asyncio.run(_await(server, Job(program=program, runs=runs, limits=limits), options)))


async def _await(server: Judge0Server, job: Job, options: dict[str, object]) -> Sequence[RunResult]:
    settings = {"kind": "judge0", "judge0": {"url": server.url, **_QUICK, **options}}
    executor = make_executor(ExecutorOptions.model_validate(settings))
    try:
        return await executor.run(job)
    finally:
        await executor.aclose()


def test_scripts_are_submitted_together_and_come_back_in_order(server: Judge0Server) -> None:
    server.polls_until_done = 3
    results = _run(server, _SUM, *[StdinRun(stdin=f"{x} 1\n") for x in range(5)])
    assert [(result.status, result.stdout) for result in results] == [("ok", f"{x + 1}\n") for x in range(5)]
    assert [method for method, _ in server.requests] == ["POST", "GET", "GET", "GET"]
    assert base64.b64decode(server.submitted[0]["source_code"]).decode() == _SUM


def test_limits_are_asked_for_in_the_service_s_units(server: Judge0Server) -> None:
    limits = Limits(wall_s=7.0, cpu_s=3.0, memory_mib=256, processes=5, output_kib=100, file_mib=2)
    _run(server, _SUM, StdinRun(stdin="1 1"), job=limits)
    asked = {name: value for name, value in server.submitted[0].items() if name not in ("source_code", "stdin")}
    assert asked == {
        "language_id": 71,
        "cpu_time_limit": 3.0,
        "wall_time_limit": 7.0,
        "memory_limit": 262144,
        "max_processes_and_or_threads": 5,
        "max_file_size": 2048,
        "enable_network": False,
    }


def test_calls_give_values(server: Judge0Server) -> None:
    program = "class Solution:\n    def pair(self, x):\n        print('hi')\n        return (x, {1: [x]})"
    runs = (
        CallRun(function="pair", arguments=("é",)),
        CallRun(function="pair", arguments=(2.5,)),
    )
    first, second = _run(server, program, *runs)
    assert (first.status, first.value, first.stdout) == ("ok", ("é", {1: ["é"]}), "hi\n")
    assert (second.status, second.value) == ("ok", (2.5, {1: [2.5]}))


@pytest.mark.parametrize(
    ("program", "run", "status", "says"),
    [
        ("raise ValueError('no')", StdinRun(stdin=""), "error", "ValueError: no"),
        ("import sys\nsys.exit(3)", StdinRun(stdin=""), "error", "exit code 3"),
        ("a = 1\0", StdinRun(stdin=""), "error", "null bytes"),
        ("raise MemoryError", StdinRun(stdin=""), "memory", "512 MiB"),
        ("import os\nos.abort()", StdinRun(stdin=""), "killed", "signal 6"),
        ("while True:\n    pass", StdinRun(stdin=""), "timeout", "stopped after 1 s"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGXFSZ)", StdinRun(stdin=""), "killed", "signal 25"),
        ("def f():\n    return [0] * 10**7", CallRun(function="f", arguments=()), "output", "4096 KiB"),
        ("def f():\n    raise SystemExit", CallRun(function="f", arguments=()), "error", "before there was a value"),
        ("import os\nos._exit(0)", CallRun(function="f", arguments=()), "error", "before there was a value"),
        ("print('result-0:{}')", CallRun(function="f", arguments=()), "error", "neither a function 'f'"),
    ],
)
def test_a_program_that_fails_says_how(server: Judge0Server, program: str, run: Run, status: str, says: str) -> None:
    if "SIGXFSZ" in program:
        program, status, says = (
            program.replace("os.kill", "signal.signal(25, signal.SIG_DFL)\nos.kill"),
            "output",
            "wrote",
        )
    (result,) = _run(server, program, run, job=Limits(wall_s=1.0 if "while" in program else 10.0))
    assert (result.status, says in result.detail) == (status, True), result


def test_runs_after_a_failure_are_left_out(server: Judge0Server) -> None:
    results = _run(server, _SUM, *[StdinRun(stdin=text) for text in ("1 1", "x", "2 2", "3 3")], batch_size=2)
    assert [result.status for result in results] == ["ok", "error"]
    assert len(server.submitted) == 2


@pytest.mark.parametrize(
    "hiccup",
    [
        Hiccup(429, '{"error": "too many"}', {"Retry-After": "0"}),
        Hiccup(503, '{"error": "queue is full"}', {"Retry-After": "0"}),
        Hiccup(502, "<html>", {"Retry-After": "not a number"}),
        Hiccup(0, drop=True),
    ],
    ids=["limited", "queue full", "gateway", "dropped"],
)
def test_a_busy_service_is_asked_again(server: Judge0Server, hiccup: Hiccup) -> None:
    server.hiccups = [hiccup, hiccup]
    assert _run(server, _SUM, StdinRun(stdin="1 1"))[0].stdout == "2\n"
    server.hiccups = [Hiccup(503, headers={"Retry-After": "0"})]
    assert _run(server, _SUM, StdinRun(stdin="1 1"))[0].stdout == "2\n"


def test_an_answer_that_takes_too_long_is_asked_for_again(server: Judge0Server) -> None:
    server.hiccups = [Hiccup(200, sleep_s=0.6)]
    assert _run(server, _SUM, StdinRun(stdin="1 1"), request_timeout_s=0.3)[0].stdout == "2\n"


@pytest.mark.parametrize(
    ("settings", "options", "says"),
    [
        ({"hiccups": [Hiccup(503, '{"error": "queue is full"}')] * 9}, {"retry_for_s": 0.1}, "queue is full"),
        ({"hiccups": [Hiccup(0, drop=True)] * 9}, {"retry_for_s": 0.1}, "no answer"),
        ({"hiccups": [Hiccup(404, "no such page")]}, {}, "HTTP 404 no such page"),
        ({"hiccups": [Hiccup(201, "<html>")]}, {}, "no JSON: <html>"),
        ({"hiccups": [Hiccup(201, "[]")]}, {}, "0 tokens for 1 submissions"),
        ({}, {"language_id": 1}, "doesn't exist"),
        ({"token": "secret"}, {}, "refuses the credentials"),
        ({"override": {"status_id": 13, "message": "aXNvbGF0ZQ=="}}, {}, "could not run a program: isolate"),
        ({"override": {"stdout": "abcde"}}, {}, "no base64"),
        ({"forget": True}, {}, "does not know a submission any more"),
        ({"polls_until_done": 10**9}, {"queue_timeout_s": 0.2}, "did not finish 1 runs in 0.2 s"),
    ],
)
def test_a_service_that_fails_is_an_error_of_the_executor(
    settings: dict[str, object], options: dict[str, object], says: str
) -> None:
    with serve_judge0(**settings) as server, pytest.raises(ExecutorError) as caught:
        _run(server, _SUM, StdinRun(stdin="1 1"), **options)
    assert says in str(caught.value)


def test_an_answer_about_other_submissions_is_an_error_of_the_executor(server: Judge0Server) -> None:
    server.hiccups = [Hiccup(201, '[{"token": "token-0"}]'), Hiccup(200, '{"submissions": []}')]
    with pytest.raises(ExecutorError, match="other submissions than were asked for"):
        _run(server, _SUM, StdinRun(stdin="1 1"))


def test_a_service_that_is_not_there_is_an_error_of_the_executor(server: Judge0Server) -> None:
    nowhere = Judge0Server(url="http://127.0.0.1:9")
    with pytest.raises(ExecutorError, match="no answer"):
        _run(nowhere, _SUM, StdinRun(stdin="1 1"), retry_for_s=0.0)


def test_secrets_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE0_TOKEN", "secret")
    with serve_judge0(token="secret") as server:
        headers = {"X-Auth-Token": "JUDGE0_TOKEN"}
        assert _run(server, _SUM, StdinRun(stdin="1 1"), headers_from=headers)[0].stdout == "2\n"
        monkeypatch.delenv("JUDGE0_TOKEN")
        with pytest.raises(ExecutorError, match="JUDGE0_TOKEN for the header X-Auth-Token is not set"):
            _run(server, _SUM, StdinRun(stdin="1 1"), headers_from=headers)


def test_jobs_wait_together(server: Judge0Server) -> None:
    async def many() -> list[str]:
        options = {"kind": "judge0", "workers": 3, "judge0": {"url": server.url, **_QUICK}}
        executor = make_executor(ExecutorOptions.model_validate(options))
        jobs = [Job(program=f"print({number})", runs=[StdinRun(stdin="")]) for number in range(6)]
        return [results[0].stdout for results in await asyncio.gather(*map(executor.run, jobs))]

    assert asyncio.run(many()) == [f"{number}\n" for number in range(6)]
    assert asyncio.run(many()) == [f"{number}\n" for number in range(6)]


def test_the_description_says_where_the_service_is(server: Judge0Server) -> None:
    executor = make_executor(ExecutorOptions.model_validate({"kind": "judge0", "judge0": {"url": server.url}}))
    described = executor.describe()
    assert described.startswith(f"Judge0 at {server.url}: isolated by the service; rows whose tests are code")


@pytest.mark.parametrize(
    "url", ["judge0.example:2358", "ftp://judge0.example", "http://", "http://a:port", "http://[::1"]
)
def test_a_service_by_no_address_is_refused_with_how_one_looks(url: str) -> None:
    with pytest.raises(RewardError, match=r"executor\.judge0\.url is '.*', which is no address") as caught:
        make_executor(ExecutorOptions.model_validate({"kind": "judge0", "judge0": {"url": url}}))
    assert "begins with http:// or https://" in str(caught.value)


@pytest.mark.parametrize(("cpu_s", "wall_s", "asked_s"), [(6.0, 18.0, 18.0), (12.0, 36.0, 20.0), (20.0, 60.0, 30.0)])
def test_no_more_by_the_clock_is_asked_than_a_service_gives(
    server: Judge0Server, cpu_s: float, wall_s: float, asked_s: float
) -> None:
    _run(server, _SUM, StdinRun(stdin="1 1"), job=Limits(cpu_s=cpu_s, wall_s=wall_s))
    assert server.submitted[0]["wall_time_limit"] == asked_s


def test_a_service_without_address_is_refused_with_how_to_name_it() -> None:
    with pytest.raises(RewardError, match=r"there is no executor.judge0.url") as caught:
        make_executor(ExecutorOptions(kind="judge0"))
    assert "executor.judge0.url=http" in str(caught.value)

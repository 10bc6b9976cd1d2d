"""Judging with an executor that runs nothing real: what goes out, what is compared here, and what comes of failures."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from grpo_rewards_code.compare import Tolerance
from grpo_rewards_code.executor.types import ExecutorError, Job, Limits, Run, RunResult, StdinRun
from grpo_rewards_code.judge import Verdict, check_problem, judge
from grpo_rewards_code.problem.row import read_problem
from grpo_rewards_code.problem.types import TestsError
from tests.plugins.grpo_rewards_code.fakes import FakeExecutor, answering, failing

ECHO = "write(str(int(read()) * 2))"
DOUBLE = "def f(x):\n    return x * 2"


def verdict(program: str, row: dict[str, Any], executor: FakeExecutor | None = None, **settings: Any) -> Verdict:
    """The verdict, with the answers kept from the program."""
    executor = executor or FakeExecutor(answering)

    async def judged() -> Verdict:
        problem = read_problem(row)
        check_problem(problem, executor)
        return await judge(program, problem, executor, Limits(), tolerance=Tolerance(), **settings)

    return asyncio.run(judged())


def stdin_row(*pairs: tuple[int, int]) -> dict[str, Any]:
    return {"tests": {"kind": "stdin", "cases": [{"input": f"{x}\n", "output": f"{y}\n"} for x, y in pairs]}}


def call_row(*pairs: tuple[Any, Any]) -> dict[str, Any]:
    cases = [{"args": [given], "expected": expected} for given, expected in pairs]
    return {"tests": {"kind": "call", "fn_name": "f", "cases": cases}}


def test_a_right_program_passes_every_test() -> None:
    assert verdict(ECHO, stdin_row((1, 2), (4, 8))) == Verdict(passed=2, tests=2)
    assert verdict(DOUBLE, call_row((2, 4), ("a", "aa"))) == Verdict(passed=2, tests=2)


def test_a_wrong_program_says_which_test_it_failed_first() -> None:
    assert verdict(ECHO, stdin_row((1, 2), (4, 9))) == Verdict(passed=1, tests=2, reason="test 2: wrong answer")
    assert verdict("def g(x): return 1", call_row((2, 4))).reason == "test 1: error: KeyError: 'f'"


@pytest.mark.parametrize("status", ["error", "timeout", "memory", "output", "processes", "killed"])
def test_a_run_that_does_not_end_well_fails_whatever_it_printed(status: Any) -> None:
    def rule(program: str, run: Run) -> RunResult:
        return RunResult(status=status, stdout="7\n", value=7, detail="Traceback\nValueError: no")

    row = {"tests": {"kind": "stdin", "cases": [{"input": "", "output": "7\n"}]}}
    assert verdict("P", row, FakeExecutor(rule)).reason == f"test 1: {status}: ValueError: no"
    assert verdict("P", call_row((1, 7)), FakeExecutor(rule)).passed == 0


def test_a_missing_result_is_no_pass() -> None:
    class Short(FakeExecutor):
        async def run(self, job: Any) -> Any:
            return (await super().run(job))[:1]

    row = stdin_row((1, 2), (4, 8))
    assert verdict(ECHO, row, Short(answering)) == Verdict(passed=1, tests=2, reason="test 2: not run")


def test_the_share_that_passes_needs_all_runs() -> None:
    executor = FakeExecutor(answering)
    row = stdin_row((1, 9), *[(x, 2 * x) for x in range(30)], (3, 7))
    found = verdict(ECHO, row, executor, partial=True)
    assert (found.passed, found.tests) == (30, 32)
    assert [len(job.runs) for job in executor.jobs] == [8, 16, 8]
    assert not any(job.stop_at_failure for job in executor.jobs)


def test_a_wrong_program_is_not_run_on_all_tests() -> None:
    executor = FakeExecutor(answering)
    verdict(ECHO, stdin_row((1, 9), *[(x, 2 * x) for x in range(100)]), executor)
    assert [len(job.runs) for job in executor.jobs] == [8]
    executor = FakeExecutor(answering)
    assert verdict(ECHO, stdin_row(*[(x, 2 * x) for x in range(200)]), executor).passed == 200
    assert [len(job.runs) for job in executor.jobs] == [8, 16, 32, 64, 64, 16]


def test_all_tests_together_have_a_limit() -> None:
    slow = FakeExecutor(lambda program, run: replace(answering(program, run), wall_s=5.0))
    found = verdict(ECHO, stdin_row(*[(x, 2 * x) for x in range(20)]), slow, total_s=30.0)
    assert found == Verdict(passed=6, tests=20, reason="its tests take longer than 30 s together")


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("row", [stdin_row(*[(x, x) for x in range(60)]), call_row(*[(1, 2)] * 60)])
def test_a_program_that_hangs_takes_no_longer_than_all_tests_may(row: dict[str, Any], partial: bool) -> None:
    class Hanging(FakeExecutor):
        waited_s = 0.0

        async def run(self, job: Job) -> list[RunResult]:
            status: Any = "timeout" if partial else "ok"
            self.jobs.append(job)
            self.waited_s += job.limits.wall_s * len(job.runs)
            return [RunResult(status=status, stdout="0\n", value=3, wall_s=job.limits.wall_s) for _ in job.runs]

    executor = Hanging(answering)
    found = verdict("P", row, executor, total_s=115.0, partial=partial)
    assert found.passed < found.tests
    assert 0.0 < executor.waited_s <= 116.0
    assert all(1.0 <= job.limits.wall_s <= 10.0 for job in executor.jobs)


def test_scripts_and_calls_of_one_row_go_out_apart() -> None:
    executor = FakeExecutor(lambda program, run: RunResult(status="ok", stdout="4", value=4))
    cases = [
        {"input": "2", "output": "4", "testtype": "stdin"},
        {"input": "2", "output": "4", "testtype": "functional"},
    ]
    row = {"public_test_cases": cases, "metadata": {"func_name": "f"}}
    assert verdict("xs: List = []", row, executor).passed == 2
    assert [isinstance(job.runs[0], StdinRun) for job in executor.jobs] == [True, False]
    assert [job.program.startswith("from typing import List") for job in executor.jobs] == [False, True]


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("args", [[nested(250)], [{"a": [nested(201)]}], [{(i, 2): 1 for i in range(60_000)}]])
def test_an_argument_that_no_program_could_be_given_makes_the_row_unreadable(args: list[Any]) -> None:
    executor = FakeExecutor(answering)
    row = {"tests": {"kind": "call", "fn_name": "f", "cases": [{"args": args, "expected": 1}]}}
    with pytest.raises(TestsError, match="nested too deeply, or too large"):
        verdict("def f(x): return 1", row, executor)
    assert executor.jobs == []


def test_an_expected_value_that_no_program_could_give_makes_the_row_unreadable() -> None:
    row = {"tests": {"kind": "call", "fn_name": "f", "cases": [{"args": [1], "expected": nested(250)}]}}
    with pytest.raises(TestsError, match="nested too deeply, or too large"):
        verdict(DOUBLE, row)
    fits = {"tests": {"kind": "call", "fn_name": "f", "cases": [{"args": [nested(150)], "expected": nested(150)}]}}
    assert verdict("def f(x): return x", fits).passed == 1


def test_a_failure_of_the_executor_is_nobodys_wrong_answer() -> None:
    with pytest.raises(ExecutorError, match="the service is away"):
        verdict(ECHO, stdin_row((1, 2)), FakeExecutor(failing))


def test_a_program_that_returns_none_for_a_function_that_is_missing_fails() -> None:
    row = {"tests": {"kind": "call", "fn_name": "nothing", "cases": [{"args": [1], "expected": None}]}}
    assert verdict("def other(x): return None", row).passed == 0

"""Judging with an executor that runs nothing real: what goes out, what is compared here, and what comes of failures."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict, deque
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from grpo_rewards_code.compare import Tolerance
from grpo_rewards_code.executor.types import ExecutorError, Job, Limits, Run, RunResult, StdinRun
from grpo_rewards_code.executor.values import Opaque
from grpo_rewards_code.judge import Verdict, judge
from grpo_rewards_code.problem.row import read_problem
from grpo_rewards_code.problem.types import TestsError
from tests.plugins.grpo_rewards_code.fakes import FakeExecutor, answering, failing

ECHO = "write(str(int(read()) * 2))"
DOUBLE = "def f(x):\n    return x * 2"


def verdict(program: str, row: dict[str, Any], executor: FakeExecutor | None = None, **settings: Any) -> Verdict:
    """The verdict, with the answers kept from the program."""
    executor = executor or FakeExecutor(answering)

    async def judged() -> Verdict:
        problem = await prepare(read_problem(row), executor, Limits())
        return await judge(program, problem, executor, Limits(), tolerance=Tolerance(), **settings)

    return asyncio.run(judged())


def stdin_row(*pairs: tuple[int, int]) -> dict[str, Any]:
    return {"tests": {"kind": "stdin", "cases": [{"input": f"{x}\n", "output": f"{y}\n"} for x, y in pairs]}}


def code_row(*lines: str) -> dict[str, Any]:
    return {"tests": {"kind": "assert", "code": list(lines)}}


def test_a_right_program_passes_every_test() -> None:
    assert verdict(ECHO, stdin_row((1, 2), (4, 8))) == Verdict(passed=2, tests=2)
    assert verdict(DOUBLE, code_row("assert f(2) == 4", "assert f('a') == 'aa'")) == Verdict(passed=2, tests=2)


@pytest.mark.parametrize(
    ("line", "right", "wrong"),
    [
        ("assert type(f(2)) == int", "1", "1.0"),
        ("assert int == type(f(2))", "1", "True"),
        ("assert type(f(2)) != int", "1.0", "1"),
        ("assert type(f(2)) is not int", "'1'", "1"),
        ("assert type(f(2)) in (int, float)", "1.5", "'1'"),
        ("assert type(f(2)) == type([1])", "[]", "()"),
        ("assert type(f(2)) == type(f(3))", "x", "x if x > 2 else str(x)"),
    ],
)
def test_the_class_of_a_value_is_a_test(line: str, right: str, wrong: str) -> None:
    assert verdict(f"def f(x): return {right}", code_row(line)).passed == 1
    assert verdict(f"def f(x): return {wrong}", code_row(line)).passed == 0


def test_a_wrong_program_says_which_test_it_failed_first() -> None:
    assert verdict(ECHO, stdin_row((1, 2), (4, 9))) == Verdict(passed=1, tests=2, reason="test 2: wrong answer")
    assert (
        verdict("def g(x): return 1", code_row("assert f(2) == 4")).reason
        == "test 1: error: NameError: name 'f' is not defined"
    )


def test_no_answer_goes_out_with_the_program() -> None:
    row = code_row(
        "assert f(2) == 40404",
        "assert abs(f(3) - 40404) < 1e-3",
        "assert f(4) in [40404]",
        "assert 40403 < f(5) < 40404",
        "assert f(6) == sum([40404])",
        "assert not f(7) != 40404",
    )
    executor = FakeExecutor(lambda program, run: RunResult(status="ok", value=True))
    verdict("PROGRAM", row, executor)
    beside = [job for job in executor.jobs if job.program]
    assert beside
    for job in executor.jobs:
        text = json.dumps([str(run) for run in job.runs])
        assert not (job.program and ("40404" in text or "40403" in text))


def test_what_is_evaluated_apart_comes_without_the_program() -> None:
    executor = FakeExecutor(answering)
    row = code_row("assert 3 < f(2) < 5", "assert f(2) == sum([1, 3])")
    assert verdict(DOUBLE, row, executor) == Verdict(passed=2, tests=2)
    assert [bool(job.program) for job in executor.jobs] == [False, True, False]


def test_an_assertion_that_does_not_hold_with_the_values_fails() -> None:
    row = code_row("assert 3 < f(2) < 5", "assert 3 < f(9) < 5", "assert f(1) > 'a'")
    assert verdict(DOUBLE, row) == Verdict(passed=1, tests=3, reason="test 2: the assertion does not hold")


@pytest.mark.parametrize("value", [Opaque("Yes"), [Opaque("Yes")], {"a": Opaque("Yes")}, {Opaque("k"): 1}])
def test_a_value_without_data_form_makes_every_kind_of_test_fail(value: object) -> None:
    executor = FakeExecutor(lambda program, run: RunResult(status="ok", value=value))
    for line in (
        "f(2) == 4",
        "f(2) != 4",
        "f(2) in [4]",
        "f(2) not in [4]",
        "abs(f(2) - 4) < 9",
        "0 < f(2)",
        "f(2) is None",
    ):
        found = verdict("P", code_row(f"assert {line}"), executor)
        if line in ("f(2) != 4", "f(2) not in [4]") and not isinstance(value, Opaque):
            continue  # a list is not 4, whatever is in it
        assert found.passed == 0, line


@pytest.mark.parametrize("status", ["error", "timeout", "memory", "output", "processes", "killed"])
def test_a_run_that_does_not_end_well_fails_whatever_it_printed(status: Any) -> None:
    def rule(program: str, run: Run) -> RunResult:
        return RunResult(status=status, stdout="7\n", value=7, detail="Traceback\nValueError: no")

    row = {"tests": {"kind": "stdin", "cases": [{"input": "", "output": "7\n"}]}}
    assert verdict("P", row, FakeExecutor(rule)).reason == f"test 1: {status}: ValueError: no"
    assert verdict("P", code_row("assert f(1) == 7"), FakeExecutor(rule)).passed == 0


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
@pytest.mark.parametrize("row", [stdin_row(*[(x, x) for x in range(60)]), code_row("assert f(1) == f(2)\n" * 30)])
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


def test_an_exception_is_expected_by_its_nearest_built_in_class() -> None:
    row = {"test": "import pytest\ndef test_it():\n    with pytest.raises(LookupError):\n        f(-1)\n"}
    assert verdict("def f(x):\n    raise KeyError(x)", row).passed == 1
    assert verdict("class E(KeyError): pass\ndef f(x):\n    raise E(x)", row).passed == 1
    assert verdict("def f(x):\n    raise ValueError(x)", row).passed == 0
    assert verdict("class E(ValueError, KeyError): pass\ndef f(x):\n    raise E(x)", row).passed == 0
    assert verdict("def f(x):\n    return LookupError", row).passed == 0
    matching = {"test": "def test_it():\n    with pytest.raises(ValueError, match='too .mall'):\n        f(-1)\n"}
    assert verdict("def f(x):\n    raise ValueError('too small')", matching).passed == 1
    assert verdict("def f(x):\n    raise ValueError('no')", matching).passed == 0


@pytest.mark.parametrize(
    "line",
    [
        "assert f(2) == 1 / 0",
        "assert f(2) == object()",
        "import no_such_module\nassert no_such_module.same(f(2), 3)",
        "import no_such_module_at_all\nassert f(no_such_module_at_all.x) == 1",
    ],
)
def test_an_expected_value_that_cannot_be_evaluated_makes_the_row_unreadable(line: str) -> None:
    with pytest.raises(TestsError):
        verdict(DOUBLE, code_row(line))


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


@pytest.mark.parametrize(
    ("line", "body"),
    [
        ("f(2) == 0.5", "from decimal import Decimal\n    return Decimal('0.5')"),
        ("f(2) == 0.5", "from fractions import Fraction\n    return Fraction(1, x)"),
        ("f(2) == Fraction(1, 2)", "from fractions import Fraction\n    return Fraction(1, x)"),
        ("f(2) < Decimal('0.6')", "from decimal import Decimal\n    return Decimal('0.5')"),
        ("isinstance(f(2), Fraction)", "from fractions import Fraction\n    return Fraction(1, x)"),
        ("f(2) == {'a': 1}", "from collections import Counter\n    return Counter('a')"),
        ("f(2) == deque([1])", "from collections import deque\n    return deque([1])"),
        ("f(2)[0] == 1 or f(2) is None", "from collections import deque\n    return deque([1])"),
    ],
)
def test_exact_numbers_and_collections_are_judged_as_python_does(line: str, body: str) -> None:
    imports = "from fractions import Fraction\nfrom decimal import Decimal\nfrom collections import deque"
    assert verdict(f"def f(x):\n    {body}", code_row(f"{imports}\nassert {line}")) == Verdict(passed=1, tests=1)


def test_a_failure_of_the_executor_is_nobodys_wrong_answer() -> None:
    with pytest.raises(ExecutorError, match="the service is away"):
        verdict(ECHO, stdin_row((1, 2)), FakeExecutor(failing))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        7,
        -(10**5000),
        1.5,
        float("inf"),
        'it\'s "x" \\ \n é',
        b"\xff",
        [1, (2,)],
        {1: {2}},
        set(),
        frozenset({1}),
        2j,
        range(3),
        Decimal("-0.5"),
        Fraction(-1, 3),
        deque([1]),
        OrderedDict(b=1, a=2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_value_is_written_out_so_that_it_comes_back(value: object) -> None:
    executor = FakeExecutor(
        lambda program, run: RunResult(status="ok", value=value) if program else answering(program, run)
    )
    line = "assert f(1) == f(2) or f(1) is None"
    assert verdict("P", code_row(line), executor).passed == 1


def test_a_program_that_returns_none_for_a_function_that_is_missing_fails() -> None:
    row = {"tests": {"kind": "call", "fn_name": "nothing", "cases": [{"args": [1], "expected": None}]}}
    assert verdict("def other(x): return None", row).passed == 0

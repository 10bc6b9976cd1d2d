"""Programs that keep something between their calls: an assertion means what it means in its script."""

from __future__ import annotations

import pytest

from grpo_rewards_code.script.read import read_script
from grpo_rewards_code.executor.types import Run, RunResult
from tests.plugins.grpo_rewards_code.fakes import FakeExecutor, answering
from tests.plugins.grpo_rewards_code.test_judge import code_row, verdict

STACK = """
class Stack:
    def __init__(self): self.items = []
    def push(self, x): self.items.append(x)
    def pop(self): return self.items.pop()
    def size(self): return len(self.items)
"""
PEEKING = STACK.replace("self.items.pop()", "self.items[-1]")
COUNTER = "n = 0\ndef f():\n    global n\n    n += 1\n    return n"
STEPS = "n = 0\ndef add(x):\n    global n\n    n += x\n    return n"
NUMBERS = "def g():\n    yield from (1, 2, 3)"
UNITTEST = """
import unittest
class T(unittest.TestCase):
    def setUp(self):
        self.s = Stack()
        self.s.push(1)
    def test_one(self):
        self.assertEqual(self.s.size(), 1)
        self.assertEqual(self.s.pop(), 1)
        self.assertEqual(self.s.size(), 0)
    def test_two(self):
        self.assertEqual(self.s.pop(), 1)
        with self.assertRaises(IndexError):
            self.s.pop()
"""


@pytest.mark.parametrize(
    ("program", "test"),
    [
        (STACK, "s = Stack()\ns.push(3)\ns.push(4)\nassert s.pop() == 4\nassert s.pop() == 3"),
        (STACK, "s = Stack()\ns.push(3)\nassert s.pop() == 3 and s.size() == 0"),
        (STACK, "s = Stack()\ns.push(3)\ns.push(4)\nassert s.pop() - s.pop() == 1"),
        (STACK, "s = Stack()\ns.push(3)\nassert s.pop() == 3\nwith raises(IndexError):\n    s.pop()"),
        (STACK, "s = Stack()\nfor x in [1, 2]:\n    s.push(x)\n    assert s.size() == x\nassert s.size() == 2"),
        (STACK, UNITTEST),
        (COUNTER, "assert f() == 1\nassert f() == 2\nassert f() > 2"),
        (COUNTER, "a = f()\nb = f()\nassert a == 1\nassert b == 2"),
        (COUNTER, "def test_a():\n    assert f() == 1\ndef test_b():\n    assert f() == 2"),
        (COUNTER, "for i in range(3):\n    assert f() == i + 1"),
        (NUMBERS, "it = g()\nassert next(it) == 1\nassert next(it) == 2\nassert next(it) == 3"),
        (STEPS, "assert add(1) == 1\nassert add(2) == 3\nassert add(3) == 6"),
        (STEPS, "add(1)\nassert add(2) == 3"),
        (STEPS, "x = 1\nadd(x)\nassert add(2) == 3"),
        (STEPS, "a = add(1)\nassert 2 < add(2) < 4\nassert a == 1"),
        (STEPS, "assert all(add(x) == x * (x + 1) // 2 for x in (1, 2, 3))"),
    ],
)
@pytest.mark.parametrize("partial", [False, True])
def test_a_right_program_that_keeps_something_passes(program: str, test: str, partial: bool) -> None:
    found = verdict(program, {"test": test}, partial=partial)
    assert found.passed == found.tests, found.reason


@pytest.mark.parametrize(
    ("program", "test"),
    [
        (PEEKING, "s = Stack()\ns.push(3)\ns.push(4)\nassert s.pop() == 4\nassert s.pop() == 3"),
        (STACK, "s = Stack()\ns.push(3)\nassert s.pop() == 3\nassert s.size() == 1"),
        (COUNTER, "assert f() == 1\nassert f() == 1"),
        (STEPS, "assert add(1) == 1\nassert add(2) == 3\nassert add(3) == 3"),
        ("def f():\n    return 1", "assert f() == 1\nassert f() == 2"),
    ],
)
def test_a_wrong_one_does_not(program: str, test: str) -> None:
    found = verdict(program, {"test": test})
    assert found.passed < found.tests


def test_calls_before_come_again_only_where_they_may_matter() -> None:
    source = "s = Solution()\nassert s.f(1) == 1\nassert s.f(2) == 4\nassert g(3) == 9\nassert g(4) == 16"
    runs = [run for test in read_script(source).tests for run in test.runs]
    assert [run.setup for run in runs if isinstance(run, ExpressionRun)] == [
        "s = Solution()",
        "s = Solution()\ns.f(1)",
        "",
        "",
    ]
    assert [test.repeats for test in read_script(source).tests] == [0, 1, 0, 0]


def test_what_comes_before_holds_no_answer() -> None:
    source = "y = 40404\nassert f(1) == y\nassert f(2) == 50505\nassert 60606 == f(3)\nassert f(y) == 70707"
    *first, last = read_script(source).tests
    for test in (*first, last):
        assert test.replay is not None
        runs, _ = test.replay()
        said = "".join(run.setup + run.expression for run in runs if isinstance(run, ExpressionRun))
        assert not any(answer in said for answer in ("50505", "60606", "70707"))
        assert ("40404" in said) == (test is last)


def test_a_wrong_program_is_run_once_more_and_not_more_often() -> None:
    executor = FakeExecutor(answering)
    verdict("def f(x):\n    return x", code_row(*[f"assert f({x}) == {x * x}" for x in range(20)]), executor)
    assert [len(job.runs) for job in executor.jobs] == [8, 1]


def test_a_test_that_ended_at_a_limit_is_not_run_again() -> None:
    def slow(program: str, run: Run) -> RunResult:
        return RunResult(status="timeout", wall_s=1.0)

    executor = FakeExecutor(slow)
    verdict("", code_row("assert f(1) == 1", "assert f(2) == 4"), executor)
    assert len(executor.jobs) == 1


def test_calls_that_come_again_get_their_time() -> None:
    executor = FakeExecutor(answering)
    row = code_row("s = Stack()", *[f"s.push(1)\nassert s.size() == {size}" for size in range(1, 8)])
    verdict(STACK, row, executor)
    assert [len(job.runs) for job in executor.jobs] == [2, 4, 1]
    assert [job.limits.cpu_s for job in executor.jobs] == [20.0, 60.0, 70.0]

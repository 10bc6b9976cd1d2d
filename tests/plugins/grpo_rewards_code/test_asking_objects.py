"""What the program returned never says itself whether it is right."""

from __future__ import annotations

import pytest

from grpo_rewards_code.script.read import read_script
from grpo_rewards_code.problem.types import TestsError
from tests.plugins.grpo_rewards_code.test_judge import verdict

EVIL = """
class E:
    def __eq__(self, other): return True
    def __hash__(self): return 1
    def __contains__(self, other): return True
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __len__(self): return 9
    def __getattr__(self, name): return lambda *a, **k: True
def f(*a): return E()
class Solution:
    def g(self, x): return E()
"""


@pytest.mark.parametrize(
    ("test", "program"),
    [
        ("assert f(3).__eq__(9)", "def f(x): return x * x"),
        ("assert f(3).__eq__(9) is True", "def f(x): return x * x"),
        ("assert not f(3).__ne__(9)", "def f(x): return x * x"),
        ("r = f(3)\nassert r.__eq__(9) == True", "def f(x): return x * x"),
        ("r = f(3).__eq__(9)\nassert r", "def f(x): return x * x"),
        ("assert f(3).__contains__(9)", "def f(x): return [9]"),
        ("assert f(3).__gt__(8)", "def f(x): return x * x"),
        ("assert Solution().g(3).__eq__(9)", "class Solution:\n    def g(self, x): return x * x"),
        ("assert f(3).startswith('a')", "def f(x): return 'ab'"),
        ("assert f(3).count(9) == 1", "def f(x): return [9]"),
        ("assert f(3)[0].__eq__(9)", "def f(x): return [9]"),
    ],
)
def test_a_method_of_a_returned_value_is_asked_apart(test: str, program: str) -> None:
    assert verdict(program, {"test": test}).passed == 1
    assert verdict(EVIL, {"test": test}).passed == 0


@pytest.mark.parametrize(
    "test",
    [
        "assert f(3).check(9) == True",
        "assert f(3).check(9)",
        "assert f(3).compare(9) == 0",
        "assert not f(3).differs(9)",
        "assert f(3).val",
        "assert f(3).issorted()",
        "assert f(3).issorted() is True",
        "assert int(f(3).check(9)) == 1",
        "r = f(3)\nassert r.check(9) in (1, True)",
        "ok = f(3).check(9)\nassert ok",
        "assert Solution().g(3).check(9)",
    ],
)
def test_what_only_an_object_of_the_program_could_answer_is_refused(test: str) -> None:
    with pytest.raises(TestsError, match="object of the program's own"):
        read_script(test)


@pytest.mark.parametrize(
    "test",
    [
        "assert Stack().is_empty()",
        "s = Stack()\ns.push(9)\nassert s.has(9)\nassert s.has(9) == True",
        "s = Stack()\ns.push(9)\nassert s.top.val == 9\nassert not s.is_empty()",
        "assert make(9).top.val == 9",
        "assert make(9).last() == 9",
    ],
)
def test_classes_that_the_test_names_are_the_task_of_the_program(test: str) -> None:
    program = """
class Node:
    def __init__(self, val): self.val = val
class Stack:
    top = None
    def push(self, x): self.top = Node(x)
    def has(self, x): return self.top.val == x
    def last(self): return self.top.val
    def is_empty(self): return self.top is None
def make(x):
    made = Stack()
    made.push(x)
    return made
"""
    found = verdict(program, {"test": test})
    assert found.passed == found.tests, found.reason

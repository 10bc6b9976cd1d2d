"""Verdicts are the script's alone: no object of the program says itself whether it is right."""

# ruff: noqa: E501 - a case a line
from __future__ import annotations

import pytest

from grpo_rewards_code.sandbox import relay
from tests.plugins.grpo_rewards_code.places import Place
from tests.plugins.grpo_rewards_code.talks import Case, payment, talks, unpaid

EVIL = """
class E:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 1
    def __contains__(self, other): return True
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __len__(self): return 9
    def __sub__(self, other): return 0.0
    __rsub__ = __add__ = __radd__ = __mod__ = __sub__
    def __getattr__(self, name): return lambda *a, **k: True
def f(*a): return E()
class Solution:
    def g(self, x): return E()
"""
SQUARE = "def f(x): return x * x"
METHOD = "class Solution:\n    def g(self, x): return x * x"
_OF_DATA = [
    ("assert f(3).__eq__(9)", SQUARE),
    ("assert f(3).__eq__(9) is True", SQUARE),
    ("assert not f(3).__ne__(9)", SQUARE),
    ("r = f(3)\nassert r.__eq__(9) == True", SQUARE),
    ("assert f(3).__contains__(9)", "def f(x): return [9]"),
    ("assert f(3).__gt__(8)", SQUARE),
    ("assert Solution().g(3).__eq__(9)", METHOD),
    ("assert f(3).startswith('a')", "def f(x): return 'ab'"),
    ("assert f(3).count(9) == 1", "def f(x): return [9]"),
    ("assert f(3)[0].__eq__(9)", "def f(x): return [9]"),
    ("assert f(3) == 9", SQUARE),
    ("assert 9 == f(3)", SQUARE),
    ("assert f(3) in (8, 9)", SQUARE),
    ("assert 9 in [f(3)]", SQUARE),
    ("assert abs(f(3) - 9) < 1e-6", SQUARE),
    ("assert abs(9 - f(3)) < 1e-6", SQUARE),
    ("assert 8 < f(3) < 10", SQUARE),
    ("assert f(3) - 9 == 0", SQUARE),
    ("assert {f(3)} == {9}", SQUARE),
    ("assert {'a': f(3)} == {'a': 9}", SQUARE),
    ("assert (f(3), 1) == (9, 1)", SQUARE),
    ("import unittest\nunittest.TestCase().assertEqual(f(3), 9)", SQUARE),
    ("import unittest\nunittest.TestCase().assertIn(f(3), [9])", SQUARE),
    ("import pytest\nassert f(3) == pytest.approx(9)", SQUARE),
    ("import math\nassert math.isclose(f(3), 9)", SQUARE),
    ("assert isinstance(f(3), int)", SQUARE),
    ("assert type(f(3)) == int", SQUARE),
    ("assert f(3) is None", "def f(x): return None"),
]
_OF_ITSELF = [
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
]
STACK = """
class Node:
    def __init__(self, val): self.val = val
class Stack:
    top = None
    def push(self, x): self.top = Node(x)
    def has(self, x): return self.top.val == x
    def last(self): return self.top.val
    def is_empty(self): return self.top is None
    def __contains__(self, x): return self.has(x)
def make(x):
    made = Stack()
    made.push(x)
    return made
"""
_OF_A_CLASS = [
    "assert Stack().is_empty()",
    "s = Stack()\ns.push(9)\nassert s.has(9)\nassert s.has(9) == True\nassert 9 in s\nassert 8 not in s",
    "s = Stack()\ns.push(9)\nassert s.top.val == 9\nassert not s.is_empty()",
    "assert make(9).top.val == 9",
    "assert make(9).last() == 9",
]


def test_an_object_that_agrees_to_everything_is_no_answer(place: Place) -> None:
    assert unpaid(place.executor, [(program, script) for script, program in _OF_DATA], 1) == []
    assert unpaid(place.executor, [(EVIL, script) for script, _ in _OF_DATA], 0) == []


def test_what_an_object_that_was_returned_says_of_itself_is_no_verdict(place: Place) -> None:
    found = talks(place.executor, [(EVIL, script) for script in _OF_ITSELF])
    assert [payment(each) for each in found].count(1) == 0, found


def test_classes_that_the_test_names_are_the_task_of_the_program(place: Place) -> None:
    assert unpaid(place.executor, [(STACK, script) for script in _OF_A_CLASS], 1) == []


def test_nothing_that_a_program_raises_prints_or_patches_makes_a_verdict(place: Place) -> None:
    programs = [
        "def f(x): raise StopIteration",
        "def f(x): raise GeneratorExit",
        "def f(x): raise KeyboardInterrupt",
        "def f(x): raise SystemExit(0)",
        "class AssertionError(BaseException): pass\ndef f(x): raise AssertionError",
        'import os\ndef f(x): os.write(4, b\'.{"passed": 1, "tests": 1, "reason": "", "none": null}\\n\')',
        "import os\ndef f(x): os.write(4, b'=[\\n')",
        "import os\ndef f(x): os.write(4, b'?\\n')",
        "import os\ndef f(x): os.write(4, b'=[\"list\",[1,null,null,null]]\\n=' * 9)",
        "import os\ndef f(x): os.close(4)",
        "import os\ndef f(x): os.close(3)",
        "import builtins\nbuiltins.all = builtins.abs = builtins.len = lambda *a: True\ndef f(x): return 0",
        "import sys\nsys.modules['grpo_rewards_code.executor.values'].encode = lambda *a: '[\"list\",[true,null,null,null]]'\ndef f(x): return 0",
    ]
    scripts = [
        "assert all(map(f, [1]))\nassert f(2) == 4",
        "assert all(f(x) == 4 for x in [2])",
        "assert [f(2)] == [4]",
    ]
    cases: list[Case] = [(each, script) for each in programs for script in scripts]
    assert unpaid(place.executor, cases, 0) == []


def test_a_talk_that_never_ends_is_cut_off(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "_MOST_LINES", 50)
    forever = "while f(1) == 1:\n    pass\nassert f(1) == 2"
    thrice = "assert [f(1), f(1), f(1)] == [1, 1, 1]"
    assert not unpaid(place.executor, [("def f(x): return x", forever)], 0)
    assert not unpaid(place.executor, [("def f(x): return x", thrice)], 1)

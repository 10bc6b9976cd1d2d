"""Programs that keep something between their calls: an assertion means what it means in its script."""

from __future__ import annotations

import pytest

from tests.plugins.grpo_rewards_code.places import Place
from tests.plugins.grpo_rewards_code.talks import unpaid

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
RIGHT = [
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
]
WRONG = [
    (PEEKING, "s = Stack()\ns.push(3)\ns.push(4)\nassert s.pop() == 4\nassert s.pop() == 3"),
    (STACK, "s = Stack()\ns.push(3)\nassert s.pop() == 3\nassert s.size() == 1"),
    (COUNTER, "assert f() == 1\nassert f() == 1"),
    (STEPS, "assert add(1) == 1\nassert add(2) == 3\nassert add(3) == 3"),
    ("def f():\n    return 1", "assert f() == 1\nassert f() == 2"),
]


@pytest.mark.parametrize("partial", [False, True])
def test_a_right_program_that_keeps_something_passes_and_a_wrong_one_does_not(place: Place, partial: bool) -> None:
    assert unpaid(place.executor, RIGHT, 1, partial=partial) == []
    assert unpaid(place.executor, WRONG, 0, partial=partial) == []

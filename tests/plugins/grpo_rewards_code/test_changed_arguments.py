"""Assertions about what the program was given: it left it alone, or changed it as it should. Nothing is left out
without a word, and no expected value comes beside the program."""

from __future__ import annotations

import json

import pytest

from grpo_rewards_code.script.read import read_script

from grpo_rewards_code.problem.types import TestsError
from tests.plugins.grpo_rewards_code.test_judge import verdict

ROTATE = "def f(m): return [list(r) for r in zip(*m[::-1])]"
ROTATE_IN_PLACE = "def f(m):\n    m[:] = [list(r) for r in zip(*m[::-1])]\n    return m"
TOTAL = "def f(m): return sum(m)"
TOTAL_EMPTIES = "def f(m):\n    s = 0\n    while m:\n        s += m.pop()\n    return s"
SORT = "def f(m): m.sort()"
SORT_NOT = "def f(m): return None"
FIRST_GONE = "def f(m):\n    s = sum(m)\n    m[0] = 0\n    return s"
ADD = "def f(d, k): return {**d, k: 1}"
ADD_IN_PLACE = "def f(d, k):\n    d[k] = 1\n    return d"
GRID = "m = [[1, 2], [3, 4]]\nassert f(m) == [[3, 1], [4, 2]]\n"


@pytest.mark.parametrize(
    ("right", "wrong", "script"),
    [
        (ROTATE, ROTATE_IN_PLACE, f"{GRID}assert m == [[1, 2], [3, 4]]"),
        (ROTATE, ROTATE_IN_PLACE, f"{GRID}assert m[0] == [1, 2]"),
        (ROTATE, ROTATE_IN_PLACE, f"{GRID}assert m[0][0] == 1 and len(m) == 2"),
        (TOTAL, TOTAL_EMPTIES, "m = [1, 2]\nassert f(m) == 3\nassert m == [1, 2]"),
        (TOTAL, TOTAL_EMPTIES, "m = [1, 2]\nassert f(m) == 3 and m == [1, 2]"),
        (TOTAL, TOTAL_EMPTIES, "m = [1, 2]\nassert f(m=m) == 3\nassert len(m) == 2"),
        (TOTAL, TOTAL_EMPTIES, "m = [1, 2]\nassert f(m) == 3\nassert sorted(m) == [1, 2]"),
        (TOTAL, TOTAL_EMPTIES, "m = [1, 2]\nassert f(m) == 3\nassert f(m) == 3\nassert m"),
        (TOTAL, FIRST_GONE, "m = [1, 2]\nassert f(m) == 3\nassert m[0] == 1"),
        (TOTAL, FIRST_GONE, "m = [1, 2]\nassert f(m) == 3 and m[0] == 1"),
        (SORT, SORT_NOT, "m = [3, 1, 2]\nassert f(m) is None\nassert m == [1, 2, 3]"),
        (SORT, SORT_NOT, "m = [3, 1, 2]\nassert f(m) is None\nassert m[0] == 1"),
        (ADD, ADD_IN_PLACE, "d = {'a': 1}\nassert f(d, 'b') == {'a': 1, 'b': 1}\nassert d == {'a': 1}"),
        (ADD, ADD_IN_PLACE, "d = {'a': 1}\nassert f(d, 'b') == {'a': 1, 'b': 1}\nassert 'b' not in d"),
    ],
)
def test_what_became_of_an_argument_is_judged(right: str, wrong: str, script: str) -> None:
    for program, is_right in ((right, True), (wrong, False)):
        found = verdict(program, {"test": script})
        assert (found.passed == found.tests) is is_right, found.reason


@pytest.mark.parametrize(
    "script",
    [
        "m = [[1], [2]]\nassert f(m[0]) == 1\nassert m[0] == [1]",
        "m = [1]\nn = m\nassert f(m) == 1\nassert n == [1]",
        "m = make()\n",
        "m = [1]\nfor x in (1, 2):\n    assert f(m) == 1\nassert m == [1]",
        "y = [9]\nassert f([1]) == y\nassert y == [9]",
    ],
)
def test_what_cannot_be_read_back_is_told_and_not_left_out(script: str) -> None:
    with pytest.raises(TestsError):
        read_script(script)


def test_no_expected_value_comes_beside_the_program() -> None:
    problem = read_script("m = [1, 2]\nassert f(m) == 4711\nassert m == [1, 4712]\nassert len(m) == 4713")
    beside = [
        f"{run.setup}\n{run.expression}"
        for test in problem.tests
        for run in test.runs
        if isinstance(run, ExpressionRun)
    ]
    assert len(problem.tests) == 3
    assert not any(secret in text for text in beside for secret in ("4711", "4712", "4713")), json.dumps(beside)

"""Functions of a test that both sides of an assertion call: none carries an answer to the program."""

from __future__ import annotations

import pytest

from grpo_rewards_code.assertion.script import read_script
from grpo_rewards_code.executor.types import ExpressionRun
from grpo_rewards_code.problem.types import TestsError


@pytest.mark.parametrize(
    "source",
    [
        "EXP = [3, 66]\ndef arg(i):\n    return sorted(EXP)[i]\nassert f(arg(0)) == EXP[1]",
        "EXP = [3, 66]\ndef arg(i):\n    return sorted(EXP)[i]\nr = f(arg(0))\nassert r == EXP[1]",
        "EXP = [3, 66]\ndef arg(i):\n    return sorted(EXP)[i]\nassert f(arg(0)) == arg(1)",
        "EXP = {'a': 3, 'b': 66}\nx = min(EXP.values())\nassert f(x) == EXP['b']",
        "def arg(i, rows=(3, 66)):\n    return rows[i]\nassert f(arg(0)) == arg(1)",
        "def arg(i, *, rows={0: 3, 1: 66}):\n    return rows[i]\nassert f(arg(0)) == arg(1)",
        "def arg(i):\n    return [3, 66][i]\nassert f(arg(0)) == arg(1)",
        "def arg(i):\n    return [3, 66][i]\nx = arg(0)\ny = arg(1)\nassert f(x) == y",
        "class Case:\n    rows = [3, 66]\ndef arg(i):\n    return Case.rows[i]\nassert f(arg(0)) == arg(1)",
        "arg = lambda i, rows=[3, 66]: rows[i]\nassert f(arg(0)) == arg(1)",
    ],
)
def test_a_table_that_a_helper_reads_is_not_both_input_and_answer(source: str) -> None:
    with pytest.raises(TestsError, match="out of the same thing"):
        read_script(source)


@pytest.mark.parametrize(
    ("source", "setup"),
    [
        ("def made(x):\n    return [x, *[]]\nassert f(made(3)) == made(4)", "def made(x):\n    return [x, *[]]"),
        ("xs = [3, 1]\nr = f(xs)\nassert r[0] == xs[1]", "xs = [3, 1]\nr = f(xs)"),
        ("xs = [3, 1]\nassert f(xs[0], len(xs)) == xs[1]", "xs = [3, 1]"),
        ("rows = [[3], [66]]\nassert f(rows[0]) == rows[1]", ""),
        ("def step(x):\n    return (x, x)\nxs = [1]\nassert f(step(2)) == xs[0]", "def step(x):\n    return (x, x)"),
    ],
)
def test_a_helper_without_a_table_may_serve_both_sides(source: str, setup: str) -> None:
    [test] = read_script(source).tests
    [run] = test.runs
    assert isinstance(run, ExpressionRun)
    assert run.setup == setup

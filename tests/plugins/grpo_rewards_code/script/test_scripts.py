"""Test code in a sandbox of its own: every kind that is written is judged as Python would, apart from the program."""

from __future__ import annotations

import pytest

from tests.plugins.grpo_rewards_code.places import Place
from tests.plugins.grpo_rewards_code.script.scripts import HONEST, NEVER_ENDING, NO_VERDICT, WRONG
from tests.plugins.grpo_rewards_code.talks import talks, unpaid


def test_right_programs_are_paid_and_wrong_ones_are_not(place: Place) -> None:
    assert unpaid(place.executor, HONEST, 1) == []
    assert unpaid(place.executor, WRONG, 0) == []


def test_a_script_that_can_judge_no_program_judges_none(place: Place) -> None:
    assert unpaid(place.executor, NO_VERDICT, None) == []


@pytest.mark.slow
def test_it_is_the_same_where_every_test_is_run(place: Place) -> None:
    assert unpaid(place.executor, HONEST, 1, partial=True) == []
    assert unpaid(place.executor, WRONG, 0, partial=True) == []


@pytest.mark.slow
def test_a_program_that_answers_for_ever_is_wrong(place: Place) -> None:
    assert unpaid(place.executor, NEVER_ENDING, 0, total_s=20.0) == []


def test_a_share_is_paid_of_the_assertions_that_hold(place: Place) -> None:
    script = "assert f(1) == 1\nassert f(2) == 5\nx = f(3)\nassert x == 3\nassert f(0) == 0"
    crashing = "def f(x):\n    if x == 2: raise ValueError\n    return x"
    ending = "import os\ndef f(x):\n    if x == 2: os._exit(0)\n    return x"
    cases = [("def f(x): return x", script), (crashing, script), (ending, script)]
    shares = [(found.passed, found.tests) for found in talks(place.executor, cases, partial=True)]  # type: ignore[union-attr]
    assert shares[0] == shares[1] == (3, 4)
    assert shares[2][0] == 1
    assert shares[2][1] >= 4


def test_why_it_failed_is_said(place: Place) -> None:
    cases = [
        ("def f(x): return 1", "assert f(1) == 1\nassert f(2) == 2"),
        ("def g(x): return 1", "assert f(1) == 1"),
        ("def f(x): raise KeyError(x)", "assert f(1) == 1"),
        ("1 / 0", "assert f(1) == 1"),
        ("import os\ndef f(x): os._exit(3)", "assert f(1) == 1"),
    ]
    assert [found.reason for found in talks(place.executor, cases)] == [  # type: ignore[union-attr]
        "test 2: the assertion does not hold",
        "test 1: error: NameError: name 'f' is not defined",
        "test 1: error: KeyError: 1",
        "test 1: error: ZeroDivisionError: division by zero",
        "test 1: error: exit code 3",
    ]


@pytest.mark.slow
def test_a_sandbox_for_each_side_serves_too() -> None:
    place = Place("single")
    assert unpaid(place.executor, HONEST[:3], 1) == []

"""Which test code is taken, and what is known of it before it runs."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_rewards_code.problem.types import TestsError
from grpo_rewards_code.script.read import read_script


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("assert f(2) == 4", {"f"}),
        ("from solution import total, Stack\ndef test_a():\n    assert total(Stack()) == 3", {"total", "Stack"}),
        ("import solution as s\nassert s.add(1, 2) == 3", {"add"}),
        ("import math\nassert math.isclose(f(2), math.pi)", {"f"}),
        ("assert np.allclose(f(np.array([1])), [1])", {"f"}),
        ("def same(a, b):\n    assert a == b\nsame(f(1), 2)", {"f"}),
        ("assert sum([1, 2]) == 3", {"sum"}),
        ("assert sorted(f(2)) == [1]", {"f"}),
    ],
)
def test_the_names_of_the_program_are_those_that_nothing_else_defines(source: str, names: set[str]) -> None:
    problem = read_script(source)
    assert names <= problem.names <= names | {"sorted", "sum"}
    assert problem.script is not None
    assert problem.script.source == source


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("", "no assertion"),
        ("x = f(1)", "no assertion"),
        ("assert True", "no assertion"),
        ("assert f(:", "not Python"),
        ("assert await f(2) == 1", "not Python"),
        ("assert f(1) == 1\n" * 200_000, "characters"),
        ("def check(candidate):\n    assert candidate(1) == 1", "no column entry_point"),
    ],
)
def test_what_is_no_test_of_a_program_says_why(source: str, reason: str) -> None:
    with pytest.raises(TestsError, match=reason):
        read_script(source)


@given(st.text(alphabet="f(x)=[]1,'\n assert:;inotr.", max_size=80))
def test_no_text_is_another_error(source: str) -> None:
    with suppress(TestsError):
        read_script(source)

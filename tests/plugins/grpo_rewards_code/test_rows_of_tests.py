"""The tests of a row in every form, and what is said of a form that cannot be read."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_rewards_code.executor.types import CallRun, StdinRun
from grpo_rewards_code.problem.packed import unpack
from grpo_rewards_code.problem.row import TEST_COLUMNS, read_problem
from grpo_rewards_code.problem.types import Equal, Output, Problem, TestsError


def pack(value: object, protocol: int = 4) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


def scripts(problem: Problem) -> list[tuple[str, tuple[str, ...]]]:
    found = []
    for test in problem.tests:
        run = test.run
        assert isinstance(run, StdinRun)
        assert isinstance(test.check, Output)
        found.append((run.stdin, test.check.any_of))
    return found


def calls(problem: Problem) -> list[tuple[str, tuple[Any, ...], tuple[Any, ...]]]:
    found = []
    for test in problem.tests:
        run = test.run
        assert isinstance(run, CallRun)
        assert isinstance(test.check, Equal)
        found.append((run.function, run.arguments, test.check.any_of))
    return found


CASE = {"input": "3 4\n", "output": "7\n"}
SUM = [("3 4\n", ("7\n",))]
TWO_LISTS = {"inputs": ["3 4\n"], "outputs": ["7\n"]}


@pytest.mark.parametrize(
    "row",
    [
        {"tests": {"kind": "stdin", "cases": [CASE]}},
        {"tests": json.dumps({"kind": "stdin", "cases": [CASE]})},
        {"tests": {"kind": "stdin", "cases": [{**CASE, "args": None}], "fn_name": None, "unordered": False}},
        {"input_output": json.dumps(TWO_LISTS)},
        {"input_output": TWO_LISTS},
        {"input_output": {"inputs": [["3 4", ""]], "outputs": ["7\n"]}},
        {"tests": TWO_LISTS},
        {"tests": [CASE]},
        {"test_cases": json.dumps([{**CASE, "type": "stdin_stdout"}])},
        {"tests": {"input": ["3 4\n"], "output": ["7\n"]}},
        {"public_test_cases": json.dumps([{**CASE, "testtype": "stdin"}]), "private_test_cases": "[]"},
        {"public_test_cases": [], "private_test_cases": pack(json.dumps([{**CASE, "testtype": "stdin"}]))},
        {"public_test_cases": None, "private_test_cases": json.dumps([CASE])},
        {
            "verification_info": {
                "language": "python",
                "test_cases": [{**CASE, "type": "stdin_stdout", "fn_name": None}],
            }
        },
        {"verification_info": json.dumps({"test_cases": [CASE]})},
        {"verification_info": {"language": "Python", "test_cases": json.dumps([CASE])}},
        {"tests": None, "test": "", "input_output": TWO_LISTS},
    ],
)
def test_a_script_is_read_from_every_form(row: dict[str, object]) -> None:
    assert scripts(read_problem(row)) == SUM


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"tests": {"kind": "call", "fn_name": "f", "cases": [{"args": [3], "expected": 9}]}}, ("f", (3,), (9,))),
        ({"input_output": {"fn_name": "f", "inputs": [[3]], "outputs": [9]}}, ("f", (3,), (9,))),
        ({"input_output": {"fn_name": "f", "inputs": [[3]], "outputs": [[9]]}}, ("f", (3,), (9, [9]))),
        ({"input_output": {"fn_name": "f", "inputs": [[3]], "outputs": [[9, 1]]}}, ("f", (3,), ([9, 1],))),
        ({"input_output": {"fn_name": "f", "inputs": [[{"1": 2}]], "outputs": [9]}}, ("f", ({1: 2},), (9,))),
        ({"input_output": {"fn_name": "f", "inputs": [[{"a": 2}]], "outputs": [9]}}, ("f", ({"a": 2},), (9,))),
        (
            {
                "public_test_cases": [{"input": '"ab"\n2', "output": '"abab"', "testtype": "functional"}],
                "metadata": '{"func_name": "f"}',
            },
            ("f", ("ab", 2), ("abab",)),
        ),
        (
            {
                "public_test_cases": [{"input": "[1]", "output": "True", "testtype": "functional"}],
                "metadata": {"func_name": "f"},
            },
            ("f", ([1],), (True,)),
        ),
        (
            {
                "verification_info": {
                    "test_cases": [{"input": "[3]", "output": "9", "type": "function_call", "fn_name": "f"}]
                }
            },
            ("f", (3,), (9,)),
        ),
        (
            {"test_cases": [{"input": "[3, [4]]", "output": "[9]", "type": "function_call", "fn_name": "f"}]},
            ("f", (3, [4]), (9, [9])),
        ),
        (
            {"test_cases": [{"input": "3, 'a'", "output": "yes", "type": "function_call", "fn_name": "f"}]},
            ("f", (3, "a"), ("yes",)),
        ),
        (
            {"test_cases": [{"input": "[3]\n4", "output": "9", "type": "function_call", "fn_name": "f"}]},
            ("f", ([3], 4), (9,)),
        ),
        (
            {"test_cases": [{"input": "[3, 4]", "output": "9", "testtype": "functional", "fn_name": "f"}]},
            ("f", ([3, 4],), (9,)),
        ),
        (
            {
                "verification_info": "{'language': 'python', 'test_cases': [{'fn_name': 'f', 'input': '[3, None]', "
                "'output': '[9]', 'type': 'function_call'}]}"
            },
            ("f", (3, None), (9, [9])),
        ),
        (
            {"test_cases": [{"input": [3], "output": 9, "type": "function_call", "fn_name": "f"}]},
            ("f", (3,), (9,)),
        ),
        (
            {"test_cases": [{"input": [3], "output": [9], "type": "function_call", "fn_name": "f"}]},
            ("f", (3,), (9, [9])),
        ),
        (
            {"test_cases": [{"input": [3], "output": [9, 1], "type": "function_call", "fn_name": "f"}]},
            ("f", (3,), ([9, 1],)),
        ),
        (
            {"test_cases": [{"input": "3", "output": "[9]", "testtype": "functional", "fn_name": "f"}]},
            ("f", (3,), ([9],)),
        ),
    ],
)
def test_a_function_is_read_from_every_form(row: dict[str, object], expected: tuple[Any, ...]) -> None:
    problem = read_problem(row)
    assert calls(problem) == [expected]
    assert "f" in problem.names


@pytest.mark.parametrize("inputs", [("[1, 2]", "[1, 2, 3]"), ("[1]", "5")])
def test_a_text_that_may_be_one_argument_or_all_of_them_is_refused(inputs: tuple[str, ...]) -> None:
    cases = [{"input": text, "output": "9", "type": "function_call", "fn_name": "f"} for text in inputs]
    with pytest.raises(TestsError, match="the list of the arguments or the one argument"):
        read_problem({"test_cases": cases})


@pytest.mark.parametrize(
    "text", ["{'test_cases': __import__('os')}", "{1: " * 500, "{'a'", "{" + " " * 2_000_001 + "}}"]
)
def test_a_cell_that_is_neither_json_nor_a_literal_is_refused(text: str) -> None:
    with pytest.raises(TestsError, match="column verification_info: it is not JSON"):
        read_problem({"verification_info": text})


def test_lists_of_one_are_only_read_as_their_value_too_when_all_outputs_are_such_lists() -> None:
    cases = [
        {"input": [n], "output": output, "type": "function_call", "fn_name": "f"} for n, output in ((1, [1]), (2, []))
    ]
    assert [right for _, _, right in calls(read_problem({"test_cases": cases}))] == [([1],), ([],)]


@pytest.mark.parametrize(
    "row",
    [
        {"test_list": ["assert f(3) == 9"], "test_setup_code": "import math"},
        {"test_list": ["assert f(3) == 9"], "test_imports": ["import math"], "test_setup_code": None},
        {"tests": {"kind": "assert", "code": ["assert f(3) == 9"]}},
        {"tests": {"kind": "assert", "code": "assert f(3) == 9", "setup": "import math"}},
        {"tests": ["assert f(3) == 9"]},
        {"tests": "assert f(3) == 9"},
        {"test": "from solution import f\n\ndef test_f():\n    assert f(3) == 9\n"},
        {"test": "def check(candidate):\n    assert candidate(3) == 9\n", "entry_point": "f"},
    ],
)
def test_assertions_are_read_from_every_form(row: dict[str, object]) -> None:
    problem = read_problem(row)
    assert problem.script is not None
    assert (problem.tests, problem.script.checks) == ((), 1)
    assert "f" in problem.names


def test_several_right_answers_and_any_order_where_the_row_says_so() -> None:
    cases = [{"input": "", "any_of": ["1\n", "2\n"]}, {"input": "", "output": "3\n", "unordered": False}]
    first, second = read_problem({"tests": {"kind": "stdin", "cases": cases, "unordered": True}}).tests
    assert first.check == Output(any_of=("1\n", "2\n"), unordered=True)
    assert second.check == Output(any_of=("3\n",))
    [call] = read_problem(
        {"tests": {"kind": "call", "fn_name": "f", "cases": [{"args": [], "any_of": [1, 2], "unordered": True}]}}
    ).tests
    assert call.check == Equal(any_of=(1, 2), style="json", unordered=True)


PLAIN = {"kind": "stdin", "cases": [CASE]}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({}, "no tests: none of its columns"),
        ({"task": "code"}, "no tests"),
        (dict.fromkeys(TEST_COLUMNS), "no tests"),
        ({"tests": {"kind": "stdin", "cases": []}}, "is empty"),
        ({"tests": []}, "is empty"),
        ({"input_output": '{"inputs": ["3 4'}, "column input_output: it is not JSON"),
        ({"input_output": {"inputs": [], "outputs": []}}, "is empty"),
        ({"input_output": {"inputs": ["1"], "outputs": []}}, "1 inputs and 0 outputs"),
        ({"input_output": {"inputs": "1", "outputs": "2"}}, "not two lists"),
        ({"input_output": {"fn_name": "f", "inputs": ["1"], "outputs": ["2"]}}, "not a list of arguments"),
        ({"input_output": {"fn_name": "f(1)", "inputs": [[1]], "outputs": ["2"]}}, "its name is"),
        ({"input_output": {"inputs": [{"a": 1}], "outputs": ["2"]}}, "neither a text nor a list of lines"),
        ({"tests": {"knd": "stdin"}}, "no form of tests that is known"),
        ({"tests": {"kind": "stdio", "cases": [CASE]}}, "known are stdin, call, assert"),
        ({"tests": {**PLAIN, "case": 1}}, "its tests have case, which is not known"),
        ({"tests": {"kind": "stdin", "cases": [{"input": "", "ouput": ""}]}}, "a test has ouput"),
        ({"tests": {"kind": "stdin", "cases": [{"input": ""}]}}, "needs either output or any_of"),
        ({"tests": {"kind": "stdin", "cases": [{**CASE, "any_of": ["7"]}]}}, "needs either output or any_of"),
        ({"tests": {"kind": "stdin", "cases": [{"input": "", "any_of": []}]}}, "not a list of right answers"),
        ({"tests": {"kind": "stdin", "cases": ["x"]}}, "has no input"),
        ({"tests": {**PLAIN, "unordered": "yes"}}, "not true or false"),
        ({"tests": {"kind": "call", "cases": [{"args": [1], "expected": 1}]}}, "fn_name is None"),
        ({"tests": {"kind": "call", "fn_name": "f", "cases": [{"args": 1, "expected": 1}]}}, "not a list"),
        ({"tests": {"kind": "assert", "code": 3}}, "neither a text nor a list"),
        ({"tests": {"kind": "assert", "code": ""}}, "is empty"),
        ({"tests": 3}, "no list of tests and no object"),
        ({"tests": [{"input": "1"}]}, "not an object with input and output"),
        ({"tests": [{**CASE, "testtype": "interactive"}]}, "the type 'interactive'"),
        ({"public_test_cases": "[]", "private_test_cases": "[]"}, "is empty"),
        ({"public_test_cases": "{}", "private_test_cases": None}, "not a list of tests"),
        ({"public_test_cases": [{"input": "1", "output": "1", "testtype": "functional"}]}, "its name is None"),
        (
            {
                "public_test_cases": [{"input": "x y", "output": "1", "testtype": "functional"}],
                "metadata": {"func_name": "f"},
            },
            "neither JSON nor Python",
        ),
        ({"verification_info": {"language": "cpp", "test_cases": [CASE]}}, "programs in cpp"),
        ({"verification_info": {"test_cases": "3"}}, "test_cases is not a list"),
        ({"test": "def check(candidate):\n    assert candidate(3) == 9\n"}, "no column entry_point"),
        ({"tests": "[" * 100_000}, "not JSON"),
    ],
)
def test_what_cannot_be_read_says_what_is_wrong(row: dict[str, object], reason: str) -> None:
    with pytest.raises(TestsError, match=reason):
        read_problem(row)


@pytest.mark.parametrize("protocol", range(6))
def test_packed_tests_are_read_in_every_protocol_of_pickle(protocol: int) -> None:
    text = json.dumps([{"input": "é\u2028", "output": "東京"}], ensure_ascii=False)
    assert unpack(pack(text, protocol)) == text


@given(st.text())
def test_packed_text_comes_out_as_it_went_in(text: str) -> None:
    assert unpack(pack(text)) == text


class Harm:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("executed",))


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (pack(Harm()), "does more than hold a text"),
        (pack(["a"]), "does more than hold a text"),
        (pack(b"a"), "does more than hold a text"),
        (pack({"a": "b"}), "does more than hold a text"),
        (pack(7), "does more than hold a text"),
        ("not base64!", "not base64 of zlib"),
        (base64.b64encode(b"plain").decode(), "not base64 of zlib"),
        (base64.b64encode(zlib.compress(b"plain")).decode(), "not a pickle"),
        (base64.b64encode(zlib.compress(pickle.dumps("a"))[:-6]).decode(), "not base64 of zlib|not a pickle"),
        (base64.b64encode(zlib.compress(b"N.")).decode(), "does more than hold a text"),
        (base64.b64encode(zlib.compress(b"\x80\x04.")).decode(), "of 0 texts"),
        (base64.b64encode(zlib.compress(b"\x80\x04\x8c\x01a\x8c\x01b.")).decode(), "of 2 texts"),
    ],
)
def test_a_pickle_of_anything_but_one_text_is_refused_and_not_run(
    packed: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(TestsError, match=reason):
        unpack(packed)
    assert capsys.readouterr().out == ""

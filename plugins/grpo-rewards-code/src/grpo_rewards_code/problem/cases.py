"""Tests that are pairs of input and output: standard input and output, or calls of one function.

{"fn_name": …, "inputs": […], "outputs": […]}            APPS, TACO
[{"input": …, "output": …, "testtype": …}, …]            LiveCodeBench, open-r1
{"input": […], "output": […]}                            CodeContests
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from grpo_rewards_code.executor.types import CallRun, StdinRun
from grpo_rewards_code.problem.json_text import parse_json
from grpo_rewards_code.problem.types import Equal, Output, Problem, Test, TestsError

__all__ = ["call_test", "from_case_list", "from_columns_of_cases", "stdin_test"]

_STDIN = ("stdin", "stdin_stdout", "input-output", "")
_LIST_CALL = "function_call"
_CALLS = ("functional", _LIST_CALL, "function")


def stdin_test(given: object, outputs: Sequence[object], *, unordered: bool = False) -> Test:
    """A test of a script. A list of lines stands for these lines."""
    texts = tuple(_text(output, "output") for output in outputs)
    return Test(run=StdinRun(stdin=_text(given, "input")), check=Output(any_of=texts, unordered=unordered))


def call_test(
    function: str, arguments: Sequence[object], outputs: Sequence[object], *, unordered: bool = False
) -> Test:
    """A test of a function, or of a method of `Solution`."""
    run = CallRun(function=function, arguments=tuple(arguments))
    return Test(run=run, check=Equal(any_of=tuple(outputs), style="json", unordered=unordered))


def from_columns_of_cases(tests: Mapping[str, Any]) -> Problem:
    """APPS and TACO: inputs and outputs in two lists, for a script or for the function `fn_name`."""
    inputs, outputs = tests.get("inputs", tests.get("input")), tests.get("outputs", tests.get("output"))
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise TestsError("its inputs and outputs are not two lists")
    if len(inputs) != len(outputs):
        raise TestsError(f"it has {len(inputs)} inputs and {len(outputs)} outputs")
    if not inputs:
        raise TestsError("its list of tests is empty")
    function = tests.get("fn_name")
    if not function:
        pairs = zip(inputs, outputs, strict=True)
        return Problem(tests=tuple(stdin_test(given, [output]) for given, output in pairs))
    name = _function(function)
    if not all(isinstance(given, list) for given in inputs):
        raise TestsError(f"an input for {name} is not a list of arguments")
    # Most rows wrap each output in a list of its own; whether it is that, or a value, cannot be seen.
    wrapped = all(isinstance(output, list) and len(output) == 1 for output in outputs)
    return Problem(
        tests=tuple(
            call_test(name, [_with_whole_keys(each) for each in given], [output[0], output] if wrapped else [output])
            for given, output in zip(inputs, outputs, strict=True)
        ),
        names=frozenset({name, "Solution"}),
    )


def from_case_list(cases: Sequence[object], *, function: object = None) -> Problem:
    """LiveCodeBench and open-r1: a list of cases, each for a script or for a function."""
    if not cases:
        raise TestsError("its list of tests is empty")
    wrapped = _are_wrapped(cases)
    as_lists = _are_argument_lists(cases)
    tests: list[Test] = []
    names: set[str] = set()
    for case in cases:
        if not isinstance(case, Mapping) or "input" not in case or "output" not in case:
            raise TestsError(f"a test is not an object with input and output: {case!r:.120}")
        kind = str(case.get("testtype") or case.get("type") or "").lower()
        called = case.get("fn_name") or case.get("func_name") or function
        if kind in _CALLS or (kind not in _STDIN and called) or (not kind and case.get("fn_name")):
            name = _function(called)
            names |= {name, "Solution"}
            output = _output(case["output"], printed=kind == _LIST_CALL)
            either = [*output, output] if wrapped and isinstance(output, list) else [output]
            tests.append(call_test(name, _arguments(case["input"], as_list=as_lists and kind == _LIST_CALL), either))
        elif kind in _STDIN:
            tests.append(stdin_test(case["input"], [case["output"]]))
        else:
            raise TestsError(f"a test has the type {kind!r}, which is not known")
    return Problem(tests=tuple(tests), names=frozenset(names))


def _are_wrapped(cases: Sequence[object]) -> bool:
    """Whether these may be rows of APPS as open-r1 has them: calls whose outputs are all lists of one."""
    return all(
        isinstance(case, Mapping)
        and case.get("type") == _LIST_CALL
        and isinstance(output := _output(case.get("output"), printed=True), list)
        and len(output) == 1
        for case in cases
    )


def _are_argument_lists(cases: Sequence[object]) -> bool:
    """Whether the inputs of open-r1's calls that are one line each are the lists of all arguments: the verifier of that
    data calls `f(*input)`. Raises `TestsError` where they are lists of several lengths, or not all lists: then some
    may be the one argument instead, and nothing says so."""
    inputs = [case.get("input") for case in cases if isinstance(case, Mapping) and case.get("type") == _LIST_CALL]
    lines = [_value(given) for given in inputs if isinstance(given, str) and len(given.split("\n")) == 1]
    lists = [line for line in lines if isinstance(line, list | tuple)]
    if not lists:
        return False
    if len(lists) < len(lines) or len({len(line) for line in lists}) > 1:
        raise TestsError("its calls are a text each, which may be the list of the arguments or the one argument")
    return True


def _output(written: object, *, printed: bool) -> object:
    """An expected value; of a `printed` one the text, where it is no value."""
    try:
        return _value(written)
    except TestsError:
        if printed:
            return written
        raise


def _text(value: object, what: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(line, str | int | float) for line in value):
        return "\n".join(map(str, value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise TestsError(f"an {what} is neither a text nor a list of lines: {value!r:.120}")


def _function(name: object) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise TestsError(f"a test calls a function, and its name is {name!r:.60}")
    return name


def _arguments(given: object, *, as_list: bool) -> list[object]:
    """One JSON value a line, or a list of the arguments; `as_list`: a text of one line is such a list."""
    if isinstance(given, list):
        return given
    if not isinstance(given, str):
        raise TestsError(f"the arguments of a call are neither lines of JSON nor a list: {given!r:.120}")
    values = [_value(line) for line in given.split("\n") if line.strip()]
    return list(values[0]) if as_list and len(values) == 1 and isinstance(values[0], list | tuple) else values


def _value(text: object) -> object:
    """A value that is written as JSON, or as Python where it is not JSON."""
    if not isinstance(text, str):
        return text
    try:
        return parse_json(text)
    except TestsError as error:
        try:
            return ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise TestsError(f"a value of a call is neither JSON nor Python: {text!r:.120}") from error


def _with_whole_keys(value: object) -> object:
    """An argument that is an object whose keys are whole numbers: JSON made texts of them."""
    if not isinstance(value, Mapping) or not value:
        return value
    try:
        return {int(key): each for key, each in value.items()}
    except ValueError:
        return value

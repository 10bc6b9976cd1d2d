"""A problem's tests and its solution in one of the forms that `code_reward` reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grpo_rewards_code.basics.function import FUNCTION_NAME, Function, program
from grpo_rewards_code.basics.options import Form, Kind

__all__ = ["make_tests", "solution_of"]

Cases = Sequence[tuple[Any, Any]]
"""Arguments with the results expected."""

_READS: Mapping[Kind, str] = {
    "list": "list(map(int, input().split()))",
    "string": "input()",
    "arithmetic": "int(input())",
}
_SHOWN = "y = f(x)\nprint(*y) if isinstance(y, list) else print(y)"


def make_tests(form: Form, cases: Cases) -> dict[str, Any]:
    """The column `tests`."""
    return _MAKE[form](cases)


def solution_of(function: Function, form: Form) -> str:
    """The reference program: the function alone, for `stdin` with the lines that read and print."""
    source = program(function.expressions)
    if form != "stdin":
        return source
    return f"{source}\n\nx = {_READS[function.kind]}\n{_SHOWN}"


def _calls(cases: Cases) -> dict[str, Any]:
    made = [{"args": [argument], "expected": result} for argument, result in cases]
    return {"kind": "call", "fn_name": FUNCTION_NAME, "cases": made}


def _lines(cases: Cases) -> dict[str, Any]:
    made = [{"input": _line(argument), "output": _line(result)} for argument, result in cases]
    return {"kind": "stdin", "cases": made}


def _line(value: Any) -> str:
    return (" ".join(map(str, value)) if isinstance(value, list) else str(value)) + "\n"


def _assertions(cases: Cases) -> dict[str, Any]:
    made = [f"assert {FUNCTION_NAME}({argument!r}) == {result!r}" for argument, result in cases]
    return {"kind": "assert", "code": made}


_MAKE: Mapping[Form, Callable[[Cases], dict[str, Any]]] = {"call": _calls, "stdin": _lines, "assert": _assertions}

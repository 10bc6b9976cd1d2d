"""Our own form of tests: an object with a `kind`.

    {"kind": "stdin", "cases": [{"input": "3 4\\n", "output": "7\\n"}]}
    {"kind": "call", "fn_name": "square", "cases": [{"args": [3], "expected": 9}]}
    {"kind": "assert", "code": ["assert square(3) == 9"], "setup": "import math"}

`any_of` in the place of `output` or `expected` has several right answers; `unordered: true`, of a case or of all of
them, lets lines or items come in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from grpo_rewards_code.problem.cases import call_test, stdin_test
from grpo_rewards_code.problem.types import Problem, Test, TestsError
from grpo_rewards_code.script.read import read_script

__all__ = ["from_assertions", "from_plain"]

_KEYS: Mapping[str, frozenset[str]] = {
    "stdin": frozenset({"kind", "cases", "unordered"}),
    "call": frozenset({"kind", "fn_name", "cases", "unordered"}),
    "assert": frozenset({"kind", "code", "setup"}),
}
_CASE_KEYS: Mapping[str, frozenset[str]] = {
    "stdin": frozenset({"input", "output", "any_of", "unordered"}),
    "call": frozenset({"args", "expected", "any_of", "unordered"}),
}


def from_plain(tests: Mapping[str, Any]) -> Problem:
    """The problem of an object with a `kind`. Raises `TestsError` for a key or a kind that is not known."""
    kind = tests["kind"]
    if not isinstance(kind, str) or kind not in _KEYS:
        raise TestsError(f"its tests are of the kind {kind!r:.60}; known are {', '.join(_KEYS)}")
    _refuse_unknown(tests, _KEYS[kind], "its tests have")
    if kind == "assert":
        return from_assertions(tests.get("code"), setup=tests.get("setup"))
    cases = tests.get("cases")
    if not isinstance(cases, list) or not cases:
        raise TestsError("its list of tests is empty" if cases == [] else "its tests have no list of cases")
    if kind == "stdin":
        return Problem(tests=tuple(_stdin(case, tests) for case in cases))
    name = tests.get("fn_name")
    if not isinstance(name, str) or not name.isidentifier():
        raise TestsError(f"its tests call a function, and fn_name is {name!r:.60}")
    return Problem(tests=tuple(_call(case, name, tests) for case in cases), names=frozenset({name, "Solution"}))


def from_assertions(code: object, *, setup: object = None) -> Problem:
    """The problem of a list of assertions, or of test code as one text."""
    if isinstance(code, list) and all(isinstance(line, str) for line in code):
        code = "\n".join(code)
    if isinstance(setup, list) and all(isinstance(line, str) for line in setup):
        setup = "\n".join(setup)
    if not isinstance(code, str) or not (setup is None or isinstance(setup, str)):
        raise TestsError("its assertions are neither a text nor a list of texts")
    if not code.strip():
        raise TestsError("its list of tests is empty")
    return read_script(code, setup=setup or "")


def _stdin(case: object, tests: Mapping[str, Any]) -> Test:
    fields = _fields(case, "stdin", "input")
    return stdin_test(fields["input"], _right(fields, "output"), unordered=_unordered(fields, tests))


def _call(case: object, name: str, tests: Mapping[str, Any]) -> Test:
    fields = _fields(case, "call", "args")
    if not isinstance(fields["args"], list):
        raise TestsError(f"the args of a test are not a list: {fields['args']!r:.120}")
    return call_test(name, fields["args"], _right(fields, "expected"), unordered=_unordered(fields, tests))


def _fields(case: object, kind: str, given: str) -> Mapping[str, Any]:
    if not isinstance(case, Mapping) or given not in case:
        raise TestsError(f"a test of the kind {kind} has no {given}: {case!r:.120}")
    _refuse_unknown(case, _CASE_KEYS[kind], "a test has")
    return case


def _right(case: Mapping[str, Any], name: str) -> Sequence[object]:
    if ("any_of" in case) == (name in case):
        raise TestsError(f"a test needs either {name} or any_of: {case!r:.120}")
    if name in case:
        return [case[name]]
    several = case["any_of"]
    if not isinstance(several, list) or not several:
        raise TestsError(f"any_of of a test is not a list of right answers: {several!r:.120}")
    return several


def _unordered(case: Mapping[str, Any], tests: Mapping[str, Any]) -> bool:
    value = case.get("unordered", tests.get("unordered", False))
    if not isinstance(value, bool):
        raise TestsError(f"unordered is {value!r:.60}, not true or false")
    return value


def _refuse_unknown(fields: Mapping[str, Any], known: frozenset[str], what: str) -> None:
    # Arrow gives every row of a column all keys of all rows, with None in them.
    unknown = sorted(str(key) for key, value in fields.items() if key not in known and value is not None)
    if unknown:
        raise TestsError(f"{what} {', '.join(unknown)}, which is not known; known are {', '.join(sorted(known))}")

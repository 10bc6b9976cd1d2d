"""The columns of a row → its problem, by the form that they have.

Place in the flow: completion → program, **row → problem** → job → run results → comparison → score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from grpo_rewards_code.problem.cases import from_case_list, from_columns_of_cases
from grpo_rewards_code.problem.json_text import parse_json, parsed_cell
from grpo_rewards_code.problem.packed import unpack
from grpo_rewards_code.problem.plain import from_assertions, from_plain
from grpo_rewards_code.problem.types import Problem, TestsError
from grpo_rewards_code.script.read import read_script

__all__ = ["TEST_COLUMNS", "read_problem"]

TEST_COLUMNS = (
    "tests",
    "test_cases",
    "input_output",
    "public_test_cases",
    "private_test_cases",
    "verification_info",
    "test_list",
    "test",
)
"""Columns that hold tests. The first that has a value is read; the two of LiveCodeBench together."""
_PYTHON = ("python", "python3", "py")


def read_problem(row: Mapping[str, object]) -> Problem:
    """The problem of a row. Raises `TestsError` where it has no tests, or none that can be read."""
    if row.get("public_test_cases") is not None or row.get("private_test_cases") is not None:
        return _live_code_bench(row)
    for column in TEST_COLUMNS:
        cell = row.get(column)
        if cell is not None and cell != "":
            return _read(cell, column, row)
    raise TestsError(f"it has no tests: none of its columns is {', '.join(TEST_COLUMNS[:-1])} or {TEST_COLUMNS[-1]}")


def _read(cell: object, column: str, row: Mapping[str, object]) -> Problem:
    if column in ("test", "tests") and isinstance(cell, str) and not cell.lstrip().startswith(("{", "[")):
        entry = row.get("entry_point")
        return read_script(cell, setup=_setup(row), entry_point=str(entry) if entry else None)
    value = parsed_cell(cell, column)
    if isinstance(value, list):
        if value and all(isinstance(line, str) for line in value):
            return from_assertions(value, setup=_setup(row))
        return from_case_list(value, function=row.get("fn_name"))
    if not isinstance(value, Mapping):
        raise TestsError(f"column {column}: {value!r:.120} is no list of tests and no object")
    return _from_object(value, column)


def _from_object(value: Mapping[str, Any], column: str) -> Problem:
    if value.get("kind") is not None:
        return from_plain(value)
    language = str(value.get("language") or "python").lower()
    if language not in _PYTHON:
        raise TestsError(f"its tests are for programs in {language}; only Python is run")
    if value.get("test_cases") is not None:
        cases = parsed_cell(value["test_cases"], column)
        if not isinstance(cases, list):
            raise TestsError(f"column {column}: test_cases is not a list")
        return from_case_list(cases, function=value.get("fn_name"))
    if {"inputs", "outputs"} <= value.keys() or {"input", "output"} <= value.keys():
        return from_columns_of_cases(value)
    keys = ", ".join(map(str, value)) or "no key"
    raise TestsError(f"column {column}: an object with {keys}, which is no form of tests that is known")


def _live_code_bench(row: Mapping[str, object]) -> Problem:
    """Public tests as JSON, private ones as JSON or packed; the function's name in the metadata."""
    metadata = row.get("metadata")
    facts = parsed_cell(metadata, "metadata") if metadata else {}
    function = facts.get("func_name") if isinstance(facts, Mapping) else None
    cases: list[object] = []
    for column in ("public_test_cases", "private_test_cases"):
        cell = row.get(column)
        if isinstance(cell, str) and cell.strip() and not cell.lstrip().startswith(("[", "{")):
            cell = parse_json(unpack(cell.strip()))
        found: Sequence[object] | object = parsed_cell(cell, column) if cell else []
        if not isinstance(found, list):
            raise TestsError(f"column {column}: is not a list of tests")
        cases += found
    return from_case_list(cases, function=function)


def _setup(row: Mapping[str, object]) -> str:
    """What MBPP has before its assertions."""
    lines = row.get("test_imports")
    parts = [row.get("test_setup_code"), *(lines if isinstance(lines, list) else [lines])]
    return "\n".join(part for part in parts if isinstance(part, str))

"""JSON out of a cell, with an error that says what is wrong with the row."""

from __future__ import annotations

import ast
import json
import warnings

from grpo_rewards_code.problem.types import TestsError

__all__ = ["parse_json", "parsed_cell"]

_MAX_LITERAL_CHARACTERS = 2_000_000
"""A tree of syntax takes some hundred times the memory of its text."""


def parse_json(text: str) -> object:
    """A JSON text. Raises `TestsError`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TestsError(f"it is not JSON: {error}") from error


def parsed_cell(cell: object, column: str) -> object:
    """A cell that may be a JSON text of its value, or Python's `repr`. Raises `TestsError` that names the column."""
    if not isinstance(cell, str):
        return cell
    try:
        return parse_json(cell)
    except TestsError as error:
        found = _literal(cell)
        if found is None:
            raise TestsError(f"column {column}: {error}") from error
        return found


def _literal(text: str) -> object:
    """A list or mapping that Python wrote out; None where it is none."""
    if not text.lstrip().startswith(("{", "[")) or len(text) > _MAX_LITERAL_CHARACTERS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ast.literal_eval(text.strip())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return found if isinstance(found, list | dict) else None

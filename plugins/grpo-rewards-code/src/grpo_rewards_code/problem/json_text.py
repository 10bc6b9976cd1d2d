"""JSON out of a cell, with an error that says what is wrong with the row."""

from __future__ import annotations

import json

from grpo_rewards_code.problem.types import TestsError

__all__ = ["parse_json", "parsed_cell"]


def parse_json(text: str) -> object:
    """A JSON text. Raises `TestsError`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TestsError(f"it is not JSON: {error}") from error


def parsed_cell(cell: object, column: str) -> object:
    """A cell that may be a JSON text of its value. Raises `TestsError` that names the column."""
    if not isinstance(cell, str):
        return cell
    try:
        return parse_json(cell)
    except TestsError as error:
        raise TestsError(f"column {column}: {error}") from error

"""From what a person types as a row to a sample: JSON, the first row of a file, and single columns.

A row with a prompt column is read as a dataset's row is, so a reward sees what it would see in a run. A row without one
is taken for the columns themselves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from grpo_core.data.columns import CHAT_COLUMNS, TEXT_COLUMNS, check_names, map_row
from grpo_core.data.files import read_path
from grpo_core.data.strict_json import parse_json
from grpo_core.errors import UsageError
from grpo_core.recipe.overrides import parse_override
from grpo_core.recipe.syntax import RecipeSyntaxError
from grpo_core.types import Message, Sample

__all__ = ["make_sample", "read_row"]

_COLUMN = re.compile(r'\s*("[^"]+"|[\w-]+)\s*=')
"""The beginning of `column=value`; a name with other signs in it, dots say, stands in double quotes."""


def read_row(texts: Sequence[str]) -> dict[str, object]:
    """The columns of several `--row`, each JSON, a file or `column=value`; later ones win.

    Raises `UsageError` for text that is none of these, `DataError` for a file that cannot be read.
    """
    row: dict[str, object] = {}
    for text in texts:
        if text.lstrip().startswith("{"):
            row |= _from_json(text)
        elif _COLUMN.match(text):
            row |= _from_pair(text)
        else:
            row |= _from_file(text)
    return row


def make_sample(row: Mapping[str, object]) -> Sample:
    """The row as a run's dataset would give it to rewards; raises `DataError` for columns that no reward may have."""
    if any(row.get(name) is not None for name in (*CHAT_COLUMNS, *TEXT_COLUMNS)):
        sample = replace(map_row(row).sample, id="row")
        check_names(sample.columns)
        return sample
    check_names(row)
    return Sample(messages=(Message(role="user", content=""),), columns=dict(row), id="row")


def _from_json(text: str) -> dict[str, object]:
    try:
        row = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"--row {_cut(text)}: is no JSON object: {error}", hint='Write --row \'{"solution": "42"}\'.'
        ) from error
    return dict(row)


def _from_pair(text: str) -> dict[str, object]:
    try:
        override = parse_override(text)
    except RecipeSyntaxError as error:
        raise UsageError(f"--row {error.message}") from error
    (name,) = override.path
    return {name: override.value}


def _from_file(text: str) -> dict[str, object]:
    path = Path(os.path.expanduser(text))
    if not os.path.exists(path):
        raise UsageError(
            f"--row {_cut(text)}: is neither JSON, nor column=value, nor a file that there is",
            hint='Write --row solution=42, --row \'{"solution": "42"}\' or --row rows.jsonl (its first row).',
        )
    return dict(read_path(path, split=None, purpose="train")[0].columns)


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."

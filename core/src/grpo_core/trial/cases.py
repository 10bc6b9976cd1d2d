"""Cases: the unit tests of a reward, one a line of a JSONL file.

    {"completion": "<answer>42</answer>", "columns": {"solution": "42"}, "expected": 1.0, "why": "the plain form"}

Read and checked here; `testing` runs them. A reward ships its own as `cases/NAME.jsonl` in its package, or beside its
file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, cast

from grpo_core.data.files import read_path
from grpo_core.data.row import Row
from grpo_core.errors import DataError, UsageError
from grpo_core.recipe.package_files import PACKAGE_PREFIX, package_file
from grpo_core.types import FinishReason
from grpo_core.types.reserved import RESERVED_NAMES

__all__ = ["CASE_KEYS", "Case", "Expected", "read_cases", "shipped_cases"]

Expected = float | None | Literal["failed"]
"""A number; None: does not apply; `failed`: the score cannot be computed, and that is said."""

DEFAULT_TOLERANCE = 1e-6
CASE_KEYS = (
    *("completion", "expected", "columns", "prompt", "completion_ids", "finish_reason", "options"),
    *("tolerance", "name", "why"),
)
"""What a case may say."""
_BY_KEY = {"prompts": "prompt", "completions": "completion", "completion_ids": "completion_ids"}
"""Names of the run that a case gives by a key of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Completions of one prompt, and what each must score."""

    place: str
    """Where it stands: `cases.jsonl line 3`."""
    texts: tuple[str, ...]
    """[G] The completions."""
    expected: tuple[Expected, ...]
    """[G] What each must score."""
    columns: Mapping[str, object] = field(default_factory=dict)
    """Of the row."""
    prompt: str = ""
    """The rendered prompt."""
    completion_ids: tuple[tuple[int, ...], ...] | None = None
    """[G][T] Tokens; None: stand-ins, one a word or sign."""
    finish_reason: FinishReason = FinishReason.STOP
    """Why all of them ended."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the reward, for this case."""
    tolerance: float = DEFAULT_TOLERANCE
    """How far a score may be off."""
    name: str = ""
    """For the table; else its place is shown."""
    why: str = ""
    """What it is about."""


def shipped_cases(target: str, name: str) -> Path | None:
    """The cases that a reward ships: `cases/NAME.jsonl` in the topmost package of its target, or beside its file; None:
    none. Imports nothing."""
    place = target.rpartition(":")[0]
    if place.endswith(".py"):
        path = Path(place).parent / "cases" / f"{name}.jsonl"
        return path if path.is_file() else None
    try:
        return package_file(f"{PACKAGE_PREFIX}{place.partition('.')[0]}/cases/{name}.jsonl")
    except UsageError:
        return None


def read_cases(path: Path) -> tuple[Case, ...]:
    """Read a file of cases; raises `DataError` that names the line for the first that is not one, and when there is
    none."""
    return tuple(_case(row) for row in read_path(path, split=None, purpose="train"))


def _case(row: Row) -> Case:
    try:
        return _parse(row.place, row.columns)
    except DataError as error:
        raise DataError(f"{row.place}: {error.message}", hint=error.hint) from error


def _parse(place: str, given: Mapping[str, object]) -> Case:
    _check_keys(given)
    texts = _texts(given["completion"])
    return Case(
        place=place,
        texts=texts,
        expected=_expected(given["expected"], len(texts)),
        columns=_columns(given.get("columns", {})),
        prompt=_text(given, "prompt"),
        completion_ids=_completion_ids(given.get("completion_ids"), len(texts)),
        finish_reason=_finish_reason(given.get("finish_reason", "stop")),
        options=_mapping(given.get("options", {}), "options"),
        tolerance=_tolerance(given.get("tolerance", DEFAULT_TOLERANCE)),
        name=_text(given, "name"),
        why=_text(given, "why"),
    )


def _check_keys(given: Mapping[str, object]) -> None:
    for key in given:
        if key not in CASE_KEYS:
            near = get_close_matches(key, CASE_KEYS, n=1, cutoff=0.75)
            meant = f"Did you mean '{near[0]}'? " if near else "What the dataset has belongs under 'columns'. "
            raise DataError(f"unknown key '{key}'", hint=f"{meant}A case has {', '.join(CASE_KEYS)}.")
    for key in ("completion", "expected"):
        if key not in given:
            raise DataError(f"a case needs '{key}'", hint='Write {"completion": "…", "columns": {…}, "expected": 1.0}.')


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and value:
        if all(isinstance(item, str) for item in value):
            return tuple(value)
        if all(isinstance(item, dict) and "content" in item for item in value):
            return ("".join(_content(item) for item in value),)
    raise DataError(
        f"'completion' is {_shown(value)}, neither a text, nor a list of texts, nor a list of chat messages",
        hint='Write "…", ["…", "…"] for several completions of one prompt, or [{"role": "assistant", "content": "…"}].',
    )


def _content(message: Mapping[str, Any]) -> str:
    """A message's text: plain, in parts, or none."""
    content = message["content"]
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    if content is None or isinstance(content, str):
        return content or ""
    raise DataError(f"'completion': the content of a message is {_shown(content)}, not a text")


def _expected(value: object, count: int) -> tuple[Expected, ...]:
    if not isinstance(value, list):
        return (_one_expected(value),) * count
    if len(value) != count:
        raise DataError(f"'expected' has {len(value)} scores for {count} completions")
    return tuple(map(_one_expected, value))


def _one_expected(value: object) -> Expected:
    if value is None or value == "failed":
        return cast(Expected, value)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise DataError(
        f"'expected' is {_shown(value)}, not a score",
        hint='A score is a number, null (does not apply) or "failed"; of several completions a list of these.',
    )


def _columns(value: object) -> dict[str, object]:
    columns = _mapping(value, "columns")
    for name in sorted(RESERVED_NAMES & columns.keys()):
        own = f"Give it as '{_BY_KEY[name]}', beside 'columns'." if name in _BY_KEY else "No dataset can have it."
        raise DataError(f"'columns' has '{name}', a name that means the run's own {name}", hint=own)
    return columns


def _completion_ids(value: object, count: int) -> tuple[tuple[int, ...], ...] | None:
    if value is None:
        return None
    several = [value] if isinstance(value, list) and all(isinstance(item, int) for item in value) else value
    if not isinstance(several, list) or not all(map(_is_ids, several)):
        raise DataError(f"'completion_ids' is {_shown(value)}, not a list of whole numbers, or of such lists")
    if len(several) != count:
        raise DataError(f"'completion_ids' are of {len(several)} completions, and there are {count}")
    return tuple(tuple(ids) for ids in several)


def _is_ids(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, int) and not isinstance(item, bool) for item in value)


def _finish_reason(value: object) -> FinishReason:
    try:
        return FinishReason(cast(str, value))
    except ValueError:
        known = ", ".join(each.value for each in FinishReason)
        raise DataError(f"'finish_reason' is {_shown(value)}; it is one of {known}") from None


def _tolerance(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
        return float(value)
    raise DataError(f"'tolerance' is {_shown(value)}, not a number of at least 0")


def _mapping(value: object, key: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise DataError(f"'{key}' is {_shown(value)}, not an object with names")


def _text(given: Mapping[str, object], key: str) -> str:
    value = given.get(key, "")
    if isinstance(value, str):
        return value
    raise DataError(f"'{key}' is {_shown(value)}, not a text")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

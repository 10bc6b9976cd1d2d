"""The completions that a run recorded, as groups that can be scored again.

    RUN/completions/step-000012.jsonl → steps → groups

Columns are those of the record: what the reward saw when the run was made, whatever became of the dataset. What JSON
does not know (bytes, dates) is text there. Token ids are not recorded; they are made of the text by the run's own
tokenizer where a reward reads them, and `differing` counts the completions that had another number of tokens. Chat
messages are not recorded either, only the rendered prompt.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_core.errors import DataError, UsageError
from grpo_core.recipe.folder import step_files_in
from grpo_core.regular_files import open_file
from grpo_core.trial.scoring import make_group
from grpo_core.types import FinishReason, Message, RolloutGroup, Sample

__all__ = ["Encode", "StoredStep", "differing", "read_step", "step_files", "to_groups"]

Encode = Callable[[Sequence[str]], Sequence[Sequence[int]]]
"""Texts -> their tokens."""

_KEYS: Mapping[str, type | tuple[type, ...]] = {
    "sample_id": str,
    "member": int,
    "prompt": str,
    "completion": str,
    "tokens": int,
    "finish_reason": str,
    "columns": dict,
    "scores": dict,
    "failures": dict,
    "total": (int, float, type(None)),
}

_HINT = "A group without one of its answers is no group. Name the steps that are to be read: --step N, once for each."


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStep:
    """The completions of a step, in the order in which they were recorded."""

    step: int
    """From 1."""
    rows: tuple[Mapping[str, Any], ...]
    """As they were recorded, one a completion."""

    @property
    def columns(self) -> frozenset[str]:
        """Of their samples."""
        return frozenset(name for row in self.rows for name in row["columns"])

    def sizes(self) -> list[int]:
        """How many completions each group has; members count from 0."""
        starts = [place for place, row in enumerate(self.rows) if row["member"] == 0]
        return [end - start for start, end in zip(starts, [*starts[1:], len(self.rows)], strict=True)]


def step_files(run_dir: Path, steps: Sequence[int] = ()) -> dict[int, Path]:
    """Step -> its file, in order; `steps` are those that are wanted, none: all.

    Raises `UsageError` for a folder without completions, and for a step that was not recorded.
    """
    files = step_files_in(run_dir / "completions")
    if not files:
        raise UsageError(f"{run_dir} has no recorded completions", hint="Name the folder of a run that made a step.")
    for step in steps:
        if step not in files:
            raise UsageError(
                f"{run_dir} has no completions of step {step}", hint=f"It has steps {min(files)} to {max(files)}."
            )
    return {step: file for step, file in files.items() if not steps or step in steps}


def read_step(step: int, file: Path) -> StoredStep:
    """Read a step's completions; raises `DataError` that names the line for the first that is no record."""
    try:
        with open_file(file) as opened:
            data = opened.read()
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}", hint=_HINT) from error
    lines = data.removesuffix(b"\n").split(b"\n")  # not splitlines: completions hold any character
    rows = tuple(_row(f"{file} line {number}", line) for number, line in enumerate(lines, start=1))
    if rows[0]["member"] != 0:
        raise DataError(f"{file}: does not begin with the first completion of a group", hint="It is no run's record.")
    return StoredStep(step=step, rows=rows)


def to_groups(step: StoredStep, columns: frozenset[str], encode: Encode | None = None) -> Iterator[RolloutGroup]:
    """The groups of a step, each sample with all of `columns`; without `encode` tokens are stand-ins."""
    start = 0
    for size in step.sizes():
        yield _group(step.rows[start : start + size], columns, encode)
        start += size


def differing(step: StoredStep, groups: Sequence[RolloutGroup]) -> int:
    """Completions whose text makes another number of tokens than were drawn, the end token aside."""
    drawn = [row["tokens"] - (row["finish_reason"] == FinishReason.STOP) for row in step.rows]
    made = [len(completion.token_ids) for group in groups for completion in group.completions]
    return sum(one != other for one, other in zip(drawn, made, strict=True))


def _row(place: str, line: bytes) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: is not valid JSON: {error}", hint=_HINT) from error
    if not isinstance(row, dict):
        raise DataError(f"{place}: is no record of a completion, but {type(row).__name__}", hint=_HINT)
    for key, kind in _KEYS.items():
        if key not in row or not isinstance(row[key], kind):
            raise _no_record(place, key)
    if row["finish_reason"] not in list(FinishReason):
        raise _no_record(place, "finish_reason")
    if not all(isinstance(score, int | float | None) for score in row["scores"].values()):
        raise _no_record(place, "scores")
    return row


def _no_record(place: str, key: str) -> DataError:
    return DataError(f"{place}: is no record of a completion: '{key}' is missing or wrong", hint=_HINT)


def _group(rows: Sequence[Mapping[str, Any]], columns: frozenset[str], encode: Encode | None) -> RolloutGroup:
    first, texts = rows[0], [row["completion"] for row in rows]
    sample = Sample(
        messages=(Message(role="user", content=first["prompt"]),),
        columns={**dict.fromkeys(columns), **first["columns"]},
        id=first["sample_id"],
    )
    return make_group(
        sample,
        texts,
        prompt=first["prompt"],
        token_ids=None if encode is None else encode(texts),
        finish_reasons=[FinishReason(row["finish_reason"]) for row in rows],
    )

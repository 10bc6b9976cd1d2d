"""JSON lines as a run leaves them: the last one may be half written, because the run was killed or is still going."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grpo_core.regular_files import open_file

__all__ = ["Line", "Row", "lines_of", "read_lines"]

Row = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a file."""

    number: int
    """From 1."""
    data: bytes
    """As it stands there, line end included."""
    row: Row | None
    """What it says; None: nothing that can be used."""
    is_cut: bool = False
    """Whether it is the last one and only half written."""
    problem: str = ""
    """Why `row` is None."""


def lines_of(path: Path) -> Iterator[Line]:
    """Yield the lines of a file, good and bad ones; raises `OSError` where it cannot be read.

    Lines end with a newline and nothing else: a completion may hold other characters that Python takes for line ends.
    """
    with open_file(path) as file:
        for number, data in enumerate(file, start=1):
            try:
                row = json.loads(data)
            except (ValueError, RecursionError):
                is_cut = not data.endswith(b"\n")
                problem = ", the last, is only half written" if is_cut else " is not JSON"
                yield Line(number=number, data=data, row=None, is_cut=is_cut, problem=problem)
                continue
            is_row = isinstance(row, dict)
            problem = "" if is_row else " is no JSON object"
            yield Line(number=number, data=data, row=row if is_row else None, problem=problem)


def read_lines(path: Path, notes: list[str]) -> Iterator[Row]:
    """Yield the objects of a file; what is none is left out and named in `notes`."""
    try:
        for line in lines_of(path):
            if line.row is not None:
                yield line.row
            else:
                notes.append(f"{_place(path)}: line {line.number}{line.problem} and was left out")
    except OSError as error:
        notes.append(f"{_place(path)} cannot be read: {error.strerror}")


def _place(path: Path) -> str:
    """`metrics.jsonl`, `completions/step-000012.jsonl`."""
    return path.name if path.name == "metrics.jsonl" else f"{path.parent.name}/{path.name}"

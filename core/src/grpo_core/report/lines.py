"""JSON lines as a run leaves them: the last one may be half written, because the run was killed or is still going."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

__all__ = ["Row", "read_lines"]

Row = dict[str, object]


def read_lines(path: Path, notes: list[str]) -> Iterator[Row]:
    """Yield the objects of a file; what is none is left out and named in `notes`.

    Lines end with a newline and nothing else: a completion may hold other characters that Python takes for line ends.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                row = json.loads(line)
            except ValueError:
                notes.append(_complaint(path, number, whole=line.endswith(b"\n")))
                continue
            if isinstance(row, dict):
                yield row
            else:
                notes.append(f"{_place(path)}: line {number} is no JSON object and was left out")


def _complaint(path: Path, number: int, *, whole: bool) -> str:
    if whole:
        return f"{_place(path)}: line {number} is not JSON and was left out"
    return f"{_place(path)}: line {number}, the last, is only half written and was left out"


def _place(path: Path) -> str:
    """`metrics.jsonl`, `completions/step-000012.jsonl`."""
    return path.name if path.name == "metrics.jsonl" else f"{path.parent.name}/{path.name}"

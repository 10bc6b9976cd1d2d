"""CSV as RFC 4180 defines it, and nothing more: Python's reader takes a stray quote for a part of a cell.

Lines end in CR LF, LF or CR; an empty line is no record. Nothing here knows of columns or files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["CsvError", "csv_records"]

_CELL = re.compile(r'"((?:[^"]|"")*)"|([^",\r\n]*)')
_END = re.compile(r",|\r\n|\n|\r|\Z")
_LINE_END = re.compile(r"\r\n|\n|\r")


class CsvError(ValueError):
    """What is wrong, and in which line."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def csv_records(text: str) -> Iterator[tuple[int, list[str]]]:
    """The records of a text, each with the number of the line it begins in, from 1. Raises `CsvError`."""
    position, line, cells = 0, 1, list[str]()
    start, is_empty = line, True
    while position < len(text) or cells:
        cell = _CELL.match(text, position)
        end = cell and _END.match(text, cell.end())
        if cell is None or end is None:
            raise CsvError(_reason(text, position), line)
        quoted = cell[1]
        cells.append(cell[2] if quoted is None else quoted.replace('""', '"'))
        is_empty = is_empty and quoted is None and not cell[2] and len(cells) == 1
        line += len(_LINE_END.findall(quoted)) if quoted else 0
        position = end.end()
        if end[0] != ",":
            if not is_empty:
                yield start, cells
            line += 1
            cells, start, is_empty = [], line, True


def _reason(text: str, position: int) -> str:
    if text[position] != '"':
        return "a quote inside a cell that does not begin with one"
    closed = re.compile(r'"(?:[^"]|"")*"').match(text, position)
    if closed is None:
        return "a quote is not closed"
    return f"{text[closed.end()]!r} after the closing quote of a cell"

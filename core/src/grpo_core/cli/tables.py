"""Tables: ruled on a terminal, plain aligned columns everywhere else, where a cell's lines are joined by `; `."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from grpo_core.cli.console import stdout

__all__ = ["Cell", "print_table"]

Cell = str | Text
"""Text that may have several lines and a style. Square brackets have no meaning in it."""


def print_table(headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Print rows of equal length under their headers."""
    if stdout.is_terminal:
        _print_ruled(headers, rows)
    else:
        _print_plain([headers, *rows])


def _print_ruled(headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for number, header in enumerate(headers):
        # The last column holds the prose and gives way; what people copy stays in one piece.
        table.add_column(header, overflow="fold", no_wrap=number < len(headers) - 1)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    stdout.print(table, soft_wrap=False)


def _print_plain(rows: Sequence[Sequence[Cell]]) -> None:
    lines = [[str(cell).replace("\n", "; ") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        stdout.print(Text(padded.rstrip()))

"""A progress bar on stderr for what takes more than two seconds, on a terminal only."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["tracked"]

T = TypeVar("T")

_PATIENCE_S = 2.0
_REFRESH_S = 0.1


def tracked(
    items: Iterable[T], *, total: int, what: str, console: Console | None = None, patience_s: float = _PATIENCE_S
) -> Iterator[T]:
    """The items as they are; `what` is said beside the bar, which appears when they are not done in time."""
    console = console or Console(stderr=True)
    if not console.is_terminal or os.environ.get("RANK", "0") != "0":  # torch's launcher numbers the processes
        yield from items
        return
    bar, started = _bar(console), time.monotonic()
    task, shown_at = bar.add_task(what, total=total), started
    try:
        for done, item in enumerate(items):
            yield item
            if (now := time.monotonic()) - shown_at > _REFRESH_S:
                shown_at = now
                bar.update(task, completed=done + 1)
                if now - started > patience_s:
                    bar.start()
    finally:
        bar.stop()


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)

"""A bar for what takes long, on a terminal; nothing else changes."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator

import pytest
from rich.console import Console

from grpo_core.data.progress import tracked


def slowly(count: int) -> Iterator[int]:
    for item in range(count):
        time.sleep(0.06)
        yield item


def shown(*, terminal: bool = True, patience_s: float = 0.0) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=80)
    assert list(tracked(slowly(5), total=5, what="counting", console=console, patience_s=patience_s)) == list(range(5))
    return file.getvalue()


def test_what_takes_long_has_a_bar_with_its_name_and_count() -> None:
    bar = shown()
    assert "counting" in bar
    assert "/5" in bar


def test_what_is_done_in_time_shows_nothing() -> None:
    assert shown(patience_s=60) == ""


def test_no_terminal_and_no_first_process_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(terminal=False) == ""
    monkeypatch.setenv("RANK", "1")
    assert shown() == ""


def test_a_bar_is_gone_when_its_work_fails() -> None:
    console = Console(file=io.StringIO(), force_terminal=True)
    items = tracked((1 // (2 - item) for item in range(4)), total=4, what="x", console=console, patience_s=0)
    with pytest.raises(ZeroDivisionError):
        list(items)

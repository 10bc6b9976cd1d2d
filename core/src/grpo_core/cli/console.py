"""The two consoles every command prints to."""

from __future__ import annotations

import io
import json
import sys

from rich.console import Console

__all__ = ["print_json", "print_utf8", "stderr", "stdout"]

stdout = Console(highlight=False, soft_wrap=True)
stderr = Console(stderr=True, highlight=False, soft_wrap=True)


def print_utf8() -> None:
    """Write UTF-8 where the locale knows ASCII only (LANG=C, many containers): data is not ASCII, and no text may end
    a run by being printed."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def print_json(value: object) -> None:
    """Print plain values as JSON, for other programs: never wrapped, never coloured."""
    stdout.out(json.dumps(value, indent=2, ensure_ascii=False))

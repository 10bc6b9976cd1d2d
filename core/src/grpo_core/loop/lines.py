"""Writing lines where the disk may be full: what a run writes down must not end it, and must stay readable.

Used by `records`; a checkpoint is another matter (`checkpoint`).
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

__all__ = ["LineFile", "encode"]


class LineFile:
    """A file that lines are added to. Those that cannot be written wait, and go in front of the next one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: list[str] = []
        self.problem: OSError | None = None
        """Why lines are waiting; None when none are."""

    @property
    def waiting(self) -> int:
        """Lines that are not on the disk yet."""
        return len(self._waiting)

    def add(self, line: str) -> None:
        """Append a line, newline included, after those that wait; afterwards `problem` says whether they all do."""
        self._waiting.append(line)
        self.flush()

    def flush(self) -> None:
        """Try to write what waits."""
        if not self._waiting:
            return
        try:
            _append(self._path, encode("".join(self._waiting)))
        except OSError as error:
            self.problem = error
        else:
            self._waiting, self.problem = [], None


def encode(text: str) -> bytes:
    """UTF-8; a lone surrogate, which has none, as the escape that JSON has for it."""
    return text.encode("utf-8", errors="backslashreplace")


def _append(path: Path, data: bytes) -> None:
    """All of it or nothing: half a line would hide the lines after it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        size = os.fstat(descriptor).st_size
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        except OSError:
            with contextlib.suppress(OSError):  # the first error is the one to tell
                os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)

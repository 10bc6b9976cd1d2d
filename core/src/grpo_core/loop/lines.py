"""Writing lines where the disk may be full: what a run writes down must not end it, and must stay readable.

Used by `records`; a checkpoint is another matter (`checkpoint`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["LineFile", "encode"]


class LineFile:
    """A file that lines are added to. Those that cannot be written wait, and go in front of the next one; if somebody
    removes the file, all of them are written again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: list[bytes] = []
        self._written = 0
        self.problem: OSError | None = None
        """Why lines are waiting; None when none are."""

    @property
    def lines(self) -> Sequence[bytes]:
        """All lines, those that wait included."""
        return self._lines

    @property
    def waiting(self) -> int:
        """Lines that are not on the disk yet."""
        return len(self._lines) - self._written

    def begin(self, lines: Iterable[bytes]) -> None:
        """Replace the file by one with these lines; the one before stays whole until this one is."""
        self._lines = list(lines)
        aside = self._path.with_suffix(".partial")
        aside.write_bytes(b"".join(self._lines))
        aside.replace(self._path)
        self._written = len(self._lines)

    def add(self, line: str) -> None:
        """Append a line, newline included, after those that wait; afterwards `problem` says whether they all do."""
        self._lines.append(encode(line))
        self.flush()

    def flush(self) -> None:
        """Try to write what waits."""
        if not self._path.exists():
            self._written = 0
        if not self.waiting:
            return
        try:
            _append(self._path, b"".join(self._lines[self._written :]))
        except OSError as error:
            self.problem = error
        else:
            self._written, self.problem = len(self._lines), None


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

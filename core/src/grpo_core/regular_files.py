"""Files as people name them, read without waiting for ever: what is no regular file (a FIFO, a device) is not read.

Every function raises `OSError` and nothing else, with a `strerror` for people: also for paths that no file can have,
for which Python raises `ValueError`.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["TEXT_BYTES", "open_file", "path_fault", "read_bytes", "read_text", "shown", "unusual_kind"]

TEXT_BYTES = 2**24
"""More than any text has that people write for a run: a recipe, a system prompt, a chat template."""
_NAME_BYTES, _PATH_BYTES = 255, 4095
_SHOWN_SIGNS = 160
_KINDS = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a folder"),
)


def path_fault(path: str) -> str | None:
    """Why no file can have this path; None where one could. Nothing is looked up."""
    if "\0" in path:
        return "there is a NUL byte in it, which no path has"
    try:
        encoded = path.encode("utf-8")
    except UnicodeEncodeError:
        return "it is not UTF-8, and a plan could not say it; rename it"
    longest = max(encoded.split(b"/"), key=len)
    if len(longest) > _NAME_BYTES:
        return f"it has a name of {len(longest)} bytes, and a name has at most {_NAME_BYTES}"
    if len(encoded) > _PATH_BYTES:
        return f"it has {len(encoded)} bytes, and a path has at most {_PATH_BYTES}"
    return None


def shown(text: str) -> str:
    """A path for a message, quoted: not too long, with its end, and in signs that any terminal takes."""
    printable = "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)
    if len(printable) > _SHOWN_SIGNS:
        half = _SHOWN_SIGNS // 2
        printable = f"{printable[: half - 1]}…{printable[-half:]}"
    return f"'{printable}'"


def unusual_kind(path: str | Path) -> str | None:
    """What a path leads to that is no regular file, `a FIFO`; None for a regular file and where nothing is."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return None
    return None if stat.S_ISREG(mode) else next((name for is_kind, name in _KINDS if is_kind(mode)), "a special file")


@contextmanager
def open_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a regular file to read it."""
    fault = path_fault(str(path))
    if fault is not None:
        raise OSError(errno.EINVAL, fault, str(path))
    kind = unusual_kind(path)  # before it is opened: that alone may wait for ever, or change a device
    if kind is not None:
        raise OSError(errno.EINVAL, f"it is {kind}, not a file", str(path))
    with open(path, "rb") as file:
        yield file


def read_bytes(path: str | Path, *, most: int) -> bytes:
    """What is in a regular file of at most so many bytes."""
    with open_file(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most // 2**20:,} MiB", str(path))
    return data


def read_text(path: str | Path) -> str:
    """The text of a regular file, as `Path.read_text` gives it; also raises `UnicodeDecodeError`."""
    return read_bytes(path, most=TEXT_BYTES).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")

"""Checksums of a checkpoint's files, beside them in SHA256SUMS: `sha256sum -c SHA256SUMS` checks them by hand.

A disk, a copy or a hand can change a byte of a weight, and nothing that loads it would notice.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from grpo_core.machine import available_cores

__all__ = ["SUMS_FILE", "add_sums", "faults_of_files", "has_sums", "write_sums"]

SUMS_FILE = "SHA256SUMS"
_SUMS_ASIDE = f"{SUMS_FILE}.partial"
_MOST_THREADS = 8
"""Hashing lets go of the interpreter, and large files are few."""
_ASIDE = ".partial-"
_LINE = re.compile(r"(\\?)([0-9a-f]{64})  (.+)", re.DOTALL)
_ESCAPED = re.compile(r"\\[\\n]")
_PLAIN = {r"\\": "\\", r"\n": "\n"}


def write_sums(folder: Path) -> None:
    """Write the checksums of all files below `folder`."""
    _write(folder, _sums(folder, _files(folder)))


def add_sums(folder: Path) -> None:
    """Add those of files that came later: what a trainer made of the others while it read them."""
    known = _read(folder)
    new = _files(folder) - known.keys()
    if new:
        _write(folder, {**known, **_sums(folder, new)})


def has_sums(folder: Path) -> bool:
    """Whether there are checksums of its files."""
    return (folder / SUMS_FILE).exists()


def faults_of_files(folder: Path, only: str | None = None) -> list[str]:
    """What is not as it was written, one line a file: other content, missing, or there without a checksum; `only` looks
    at that file alone."""
    try:
        known = _read(folder)
    except (OSError, ValueError) as error:
        return [f"{SUMS_FILE} cannot be read: {error}"]
    there = _files(folder)
    if only is not None:
        known = {name: known[name] for name in known if name == only}
        there &= {only}
    faults = [f"{name} has no checksum in {SUMS_FILE}" for name in there - known.keys()]
    with _threads() as threads:
        faults += filter(None, threads.map(lambda name: _fault(folder, name, known[name]), known))
    return sorted(faults)


def _fault(folder: Path, name: str, checksum: str) -> str | None:
    try:
        return None if _sum(folder / name) == checksum else f"{name} is not what was written: its checksum is another"
    except FileNotFoundError:
        return f"{name} is missing"
    except OSError as error:
        return f"{name} cannot be read: {error.strerror}"


def _files(folder: Path) -> set[str]:
    """All files below a folder; not those that are still written aside, or were when a kill came."""
    names = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    listed = (name for name in names if not any(part.startswith(_ASIDE) for part in name.parts))
    return set(map(str, listed)) - {SUMS_FILE, _SUMS_ASIDE}


def _sums(folder: Path, names: Iterable[str]) -> dict[str, str]:
    ordered = sorted(names)
    with _threads() as threads:
        return dict(zip(ordered, threads.map(lambda name: _sum(folder / name), ordered), strict=True))


def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, min(_MOST_THREADS, available_cores())))


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(folder: Path, sums: dict[str, str]) -> None:
    aside = folder / _SUMS_ASIDE
    lines = "".join(f"{_line(sums[name], name)}\n" for name in sorted(sums))
    aside.write_text(lines, encoding="utf-8", errors="surrogateescape")
    aside.replace(folder / SUMS_FILE)


def _read(folder: Path) -> dict[str, str]:
    """Name -> checksum; raises `ValueError` for a line that is none."""
    text = (folder / SUMS_FILE).read_text(encoding="utf-8", errors="surrogateescape")
    return dict(_entries(text.removesuffix("\n").split("\n")))


def _entries(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, start=1):
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"line {number} is not a checksum and a name")
        mark, checksum, name = found.groups()
        yield _ESCAPED.sub(lambda each: _PLAIN[each[0]], name) if mark else name, checksum


def _line(checksum: str, name: str) -> str:
    """As `sha256sum` writes it: a backslash or a line end in a name is escaped, and the line marked."""
    escaped = name.replace("\\", r"\\").replace("\n", r"\n")
    mark = "" if escaped == name else "\\"
    return f"{mark}{checksum}  {escaped}"

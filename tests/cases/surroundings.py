"""What stands around a program of a case: a canary, a folder outside, a listener, and what must be so afterwards.

Placeholders in a case's texts become these: {CANARY}, {CANARY_DIR}, {OUTSIDE}, {PORT}, {TOKEN}, {TMP}.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Surroundings", "surroundings"]

_CONTENT = "do not touch\n"
_TOKEN_LIMIT_S = 2.0
_COUNT_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """One case's."""

    canary: Path
    outside: Path
    listener: socket.socket
    token: str
    scratch: Path
    """Where temporary files of this process go meanwhile."""
    children: frozenset[int]
    """Processes that this one had before."""

    def fill(self, value: Any) -> Any:
        """A text, or the texts in something, with the placeholders filled in."""
        match value:
            case str():
                for name, text in self._texts().items():
                    value = value.replace("{" + name + "}", text)
                return value
            case list():
                return [self.fill(each) for each in value]
            case dict():
                return {key: self.fill(each) for key, each in value.items()}
        return value

    def wrong_afterwards(self, check: str, next_score: Callable[[], object]) -> str | None:
        """What does not hold of what a case wants checked, and of what holds after every case."""
        return self._wrong(check, next_score) or self._left_over()

    def no_interpreter(self, *, exists: bool) -> Path:
        """The path of an interpreter that is not there, or is and ends at once."""
        path = self.canary.parent / "no-python"
        if exists:
            path.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
            path.chmod(0o755)
        return path

    def _texts(self) -> Mapping[str, str]:
        return {
            "CANARY": str(self.canary),
            "CANARY_DIR": str(self.canary.parent),
            "OUTSIDE": str(self.outside),
            "PORT": str(self.listener.getsockname()[1]),
            "TOKEN": self.token,
            "TMP": str(self.scratch),
        }

    def _wrong(self, check: str, next_score: Callable[[], object]) -> str | None:
        filled = self.fill(check)
        if not check or "no child or zombie" in check:
            return None  # holds after every case
        if match := re.search(r"(/\S+) does not exist", filled):
            return f"{match[1]} exists" if os.path.lexists(match[1]) else None
        if match := re.search(r"(/\S+) still exists", filled):
            kept = Path(match[1])
            whole = kept.is_file() and kept.read_text(encoding="utf-8") == _CONTENT
            return None if whole or kept.is_dir() else f"{kept} was changed"
        if "in its command line" in check:
            return _unless(lambda: not _with_token(self.token), _TOKEN_LIMIT_S, "a process of the program lives on")
        if "process count" in check:
            return _unless(lambda: _descendants() <= self.children, _COUNT_LIMIT_S, "processes are left")
        if "got no connection" in check:
            return "somebody connected" if self._was_called() else None
        if "scores the next sample" in check:
            score = next_score()
            return None if score == 1.0 else f"the next sample, which is right, scores {score}"
        return None  # what holds after every case: nothing left, changed or reached

    def _was_called(self) -> bool:
        self.listener.settimeout(0.2)
        try:
            self.listener.accept()[0].close()
        except TimeoutError:
            return False
        return True

    def _left_over(self) -> str | None:
        """No case may leave a process, a zombie or a file, change the canary, or reach the listener."""
        if wrong := _unless(lambda: _descendants() <= self.children, _COUNT_LIMIT_S, "processes or zombies are left"):
            return wrong
        if left := [path.name for path in self.scratch.iterdir()]:
            return f"files are left: {', '.join(left)}"
        if left := [path.name for path in self.outside.iterdir()]:
            return f"files are left outside: {', '.join(left)}"
        if not self.canary.is_file() or self.canary.read_text(encoding="utf-8") != _CONTENT:
            return "the canary was changed"
        return "somebody connected to the listener" if self._was_called() else None


@contextmanager
def surroundings() -> Iterator[Surroundings]:
    """Make them, with everything in a folder that anyone may enter and write: only the sandbox keeps a program out."""
    with tempfile.TemporaryDirectory() as name, socket.create_server(("127.0.0.1", 0)) as listener:
        folder = Path(name)
        places = {place: folder / place for place in ("canary", "outside", "scratch")}
        for place in (folder, *places.values()):
            place.mkdir(exist_ok=True)
            place.chmod(0o777)
        canary = places["canary"] / "canary.txt"
        canary.write_text(_CONTENT, encoding="utf-8")
        canary.chmod(0o666)
        with _temporary_files_in(places["scratch"]):
            yield Surroundings(
                canary=canary,
                outside=places["outside"],
                listener=listener,
                token=f"token-{secrets.token_hex(8)}",
                scratch=places["scratch"],
                children=frozenset(_descendants()),
            )


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    before, variable = tempfile.tempdir, os.environ.get("TMPDIR")
    tempfile.tempdir, os.environ["TMPDIR"] = str(folder), str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before
        if variable is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = variable


def _unless(holds: Callable[[], bool], limit_s: float, wrong: str) -> str | None:
    """What is wrong when something does not come to hold in time."""
    until = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > until:
            return wrong
        time.sleep(0.05)
    return None


def _with_token(token: str) -> list[int]:
    """Processes of the whole machine with the token in their command line, this one aside."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if token.encode() in line:
                found.append(int(entry.name))
    return found


def _descendants() -> set[int]:
    """Processes below this one, zombies included."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])
    found: set[int] = set()
    newest = {os.getpid()}
    while newest:
        newest = {pid for pid, parent in parents.items() if parent in newest} - found
        found |= newest
    return found

"""Which files of the host an interpreter needs: itself, its standard library, and the shared libraries they load.

Nothing else of the host is shown to a program. In particular no packages: those come by `import_folders` only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grpo_rewards_code.executor.types import ExecutorError

__all__ = ["Layout", "find_layout"]

_QUESTION_LIMIT_S = 60.0
_LIBRARY_FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/lib32", "/lib", "/lib64", "/lib32")
_QUESTION = """
import json, os, sys, sysconfig
for name in ("_ctypes", "_ssl", "_sqlite3", "zlib", "_bz2", "_lzma", "_decimal", "_uuid"):
    try:
        __import__(name)
    except ImportError:
        pass
with open("/proc/self/maps") as file:
    mapped = {line.split(maxsplit=5)[5].strip() for line in file if len(line.split(maxsplit=5)) == 6}
libraries = sorted({os.path.dirname(os.path.realpath(m)) for m in mapped if m.startswith("/") and ".so" in m})
print(json.dumps({
    "version": list(sys.version_info[:3]),
    "executable": os.path.realpath(sys.executable),
    "folders": [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"),
                os.path.join(sys.base_prefix, "lib"), *libraries],
}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The host's files that a sandbox shows, at the same places and read-only."""

    executable: str
    """The interpreter itself, no link."""
    version: tuple[int, ...]
    """Of Python."""
    paths: tuple[str, ...]
    """Files and folders, none within another."""
    links: tuple[tuple[str, str], ...]
    """(place, where it leads): `/lib` is `usr/lib` on most systems."""


def find_layout(interpreter: str | None, import_folders: Sequence[str]) -> Layout:
    """Ask an interpreter (this one, when none is named) where it lives; `ExecutorError` when it does not answer."""
    asked = interpreter or sys.executable
    try:
        reply = subprocess.run(
            [os.path.realpath(asked), "-I", "-S", "-c", _QUESTION],
            capture_output=True,
            timeout=_QUESTION_LIMIT_S,
            check=True,
            env={},
            stdin=subprocess.DEVNULL,
        )
        found = json.loads(reply.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise ExecutorError(f"the interpreter {asked!r} for programs cannot be used: {error}") from error
    folders = [*found["folders"], *map(os.path.abspath, import_folders)]
    links = tuple((place, os.readlink(place)) for place in _LIBRARY_FOLDERS if os.path.islink(place))
    linked = {place for place, _ in links}
    folders += [place for place in _LIBRARY_FOLDERS if os.path.isdir(place) and place not in linked]
    paths = _outermost([found["executable"], *(os.path.realpath(each) for each in folders if os.path.isdir(each))])
    return Layout(executable=found["executable"], version=tuple(found["version"]), paths=paths, links=links)


def _outermost(paths: Sequence[str]) -> tuple[str, ...]:
    kept = {path for path in paths if not set(map(str, Path(path).parents)) & set(paths)}
    return tuple(sorted(kept))

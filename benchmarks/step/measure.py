"""Time and memory of a command with all its descendants, and of each step that it marks; Linux only."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mark", "Measured", "measure", "steps_of"]

_LOOK_EVERY_S = 0.05
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The end of a step."""

    wall_s: float
    """Since the command was started."""
    cpu_s: float
    """Of all its processes so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a command took."""

    marks: tuple[Mark, ...]
    peak_bytes: int
    """Resident memory of the whole tree; pages that processes share count in each."""


def measure(command: Sequence[str], marks: Path, *, folder: Path, environment: Mapping[str, str]) -> Measured:
    """Run it; `marks` is a file to which it adds a line at the end of each step. Raises `CalledProcessError`."""
    log = folder / f"{marks.stem}.log"
    ticks: dict[int, int] = {}
    seen: list[Mark] = []
    peak = 0
    with log.open("w", encoding="utf-8") as output:
        began = time.perf_counter()
        child = subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **environment}
        )
        while child.poll() is None:
            resident = 0
            for process, used, pages in _tree(child.pid):
                ticks[process] = used
                resident += pages
            peak = max(peak, resident * os.sysconf("SC_PAGE_SIZE"))
            lines = marks.read_text(encoding="utf-8").count("\n") if marks.exists() else 0
            mark = Mark(wall_s=time.perf_counter() - began, cpu_s=sum(ticks.values()) / _TICKS_A_SECOND)
            seen += [mark] * (lines - len(seen))
            time.sleep(_LOOK_EVERY_S)
        lines = marks.read_text(encoding="utf-8").count("\n") if marks.exists() else 0
        last = Mark(wall_s=time.perf_counter() - began, cpu_s=sum(ticks.values()) / _TICKS_A_SECOND)
        seen += [last] * (lines - len(seen))
    if child.returncode:
        print(log.read_text(encoding="utf-8")[-3000:])
        raise subprocess.CalledProcessError(child.returncode, list(command))
    return Measured(marks=tuple(seen), peak_bytes=peak)


def steps_of(measured: Measured, *, skip: int) -> list[Mark]:
    """Wall and CPU seconds of each step behind the first `skip`."""
    pairs = list(zip(measured.marks, measured.marks[1:], strict=False))[max(0, skip - 1) :]
    return [Mark(wall_s=after.wall_s - before.wall_s, cpu_s=after.cpu_s - before.cpu_s) for before, after in pairs]


def _tree(root: int) -> Iterator[tuple[int, int, int]]:
    """Process, CPU ticks and resident pages, of a process and its descendants."""
    left = [root]
    while left:
        process = left.pop()
        try:
            fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            for task in Path(f"/proc/{process}/task").iterdir():
                left += map(int, (task / "children").read_text(encoding="ascii").split())
        except (OSError, ValueError):
            continue
        if fields[0] != "Z":
            yield process, int(fields[11]) + int(fields[12]), int(fields[21])

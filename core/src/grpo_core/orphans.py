"""How a process ends with the one that started it, however that one died; and who goes first when memory is short.

On Linux the kernel sees to it, also while an import or a hung call keeps Python from looking. It follows the *thread*
that started a process: that must be one that lasts as long as its process should. Elsewhere a thread looks.

    die_with_parent     killed at once: before there is anything to say goodbye to
    part_from_parent    from now on this process looks itself, by `orphaned`, and ends as it sees fit

Imports nothing that takes time: it is the first thing that a process does.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["LAUNCHER", "die_with_launcher", "die_with_parent", "go_first", "orphaned", "part_from_parent"]

LAUNCHER = "GRPO_LAUNCHER_PID"
"""The environment variable that tells a rank which process started it."""
_PR_SET_PDEATHSIG = 1
_LOOK_S = 0.5
_KILLED_FIRST = 800
"""Of 1000, which is what programs in a sandbox have; a process has 0, unless it was given more."""

_bound = threading.Event()
"""Whether this process dies with its parent, which it then does not look after itself."""


def die_with_launcher() -> None:
    """As `die_with_parent`, for a process whose launcher has said who it is; nothing for one of another starter. What
    this process starts is not told."""
    launcher = os.environ.pop(LAUNCHER, None)
    if launcher is not None:
        die_with_parent(int(launcher))


def die_with_parent(parent: int, *, by: int = signal.SIGKILL) -> None:
    """Have this process killed when `parent`, which started it, is gone; now, where it is gone already. On Linux it may
    be another signal."""
    _bound.set()
    if sys.platform == "linux":
        _set_death_signal(by)
    else:
        threading.Thread(target=_look, args=[parent], name="orphans", daemon=True).start()
    if orphaned(parent):
        os._exit(1)


def part_from_parent(*, looks_late: bool = False) -> None:
    """Leave it to this process, where it would die with its parent, to end then. Call it in the main thread.

    `looks_late`: code of others may keep Python from looking, so the kernel still has a word: 16 seconds after the
    parent, the process ends in any case.
    """
    if not _bound.is_set():
        return
    _bound.clear()
    if sys.platform != "linux":
        return
    late = getattr(signal, "SIGSTKFLT", None) if looks_late else None
    if late is not None:
        # The C library's own `alarm` is the handler: called with the signal's number, 16, it has SIGALRM end the
        # process in as many seconds. That needs no lock of Python's, which a reward may hold for hours.
        libc = ctypes.CDLL(None)
        libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
        libc.signal(int(late), ctypes.cast(libc.alarm, ctypes.c_void_p))
    _set_death_signal(late or 0)


def orphaned(parent: int) -> bool:
    """Whether `parent`, which started this process, is gone."""
    return os.getppid() != parent


def go_first() -> None:
    """Have the kernel kill this process rather than the trainer when memory is short."""
    score = Path("/proc/self/oom_score_adj")
    with suppress(OSError, ValueError):  # not Linux, or not allowed: then it is as likely as any other
        if int(score.read_text()) < _KILLED_FIRST:
            score.write_text(str(_KILLED_FIRST))


def _set_death_signal(number: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number)


def _look(parent: int) -> None:
    while _bound.is_set():
        if orphaned(parent):
            os._exit(1)
        time.sleep(_LOOK_S)

"""A limit on how long a function may run, in whichever thread: a loop in somebody's chat template may have no end.

A thread beside it looks now and then which functions still run, and raises in the thread of one that was there too
often: its looks are counted and not a clock, so that a process that was stopped meanwhile is not blamed. What runs on
as one call of C, such as the power of huge numbers, is stopped only when that call returns.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["run_limited"]

Result = TypeVar("Result")

_LOOK_INTERVAL_S = 0.25
_lock = threading.Lock()
_running: set[_Run] = set()
_watch: threading.Thread | None = None


class _Expired(BaseException):
    """Raised from outside, past every handler in the function."""


class _Run:
    """A function that runs in a thread."""

    def __init__(self, limit_s: float) -> None:
        self.thread = threading.get_ident()
        self.looks_left = limit_s / _LOOK_INTERVAL_S
        self.expired = False


def run_limited(function: Callable[[], Result], *, limit_s: float) -> Result:
    """What the function returns; `TimeoutError` when it takes longer than about so many seconds."""
    run = _Run(limit_s)
    try:
        try:
            _begin(run)
            return function()
        finally:
            with _lock:
                _running.discard(run)  # from here on nothing is raised any more
            while run.expired and not isinstance(sys.exception(), _Expired):
                time.sleep(0.001)  # it is on its way, and must not meet what comes after
    except _Expired:
        raise TimeoutError(f"it does not end: {limit_s:g} s were not enough") from None


def _forget_all() -> None:
    """A process that is forked has neither the thread nor what it looked at, and perhaps its lock as it was held."""
    global _lock
    _lock = threading.Lock()
    _running.clear()


os.register_at_fork(after_in_child=_forget_all)


def _begin(run: _Run) -> None:
    global _watch
    with _lock:
        _running.add(run)
        if _watch is None or not _watch.is_alive():  # also in a process that was forked
            _watch = threading.Thread(target=_look, name="time limit", daemon=True)
            _watch.start()


def _look() -> None:
    while True:
        time.sleep(_LOOK_INTERVAL_S)
        with _lock:
            for run in _running:
                run.looks_left -= 1
                if run.looks_left <= 0 and not run.expired:
                    run.expired = True
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(run.thread), ctypes.py_object(_Expired))

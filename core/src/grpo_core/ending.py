"""How this process ends where code that is not ours has a say: never without a word, and never waited for for ever.

    crash in compiled code     faulthandler prints where every thread stood
    `os._exit`                 who calls it, before it happens; and a run that is not done has not gone well
    `sys.exit`                 an error like any other (`as_error`)
    threads, child processes   those that are left when all is done are named after some seconds, and given up

Imports nothing of ours before something happens: it is the first that a process of a run does.
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from grpo_core.errors import GrpoError

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

__all__ = ["advising", "as_error", "end", "words_before_the_end"]

WAIT_S = 5.0
"""How long what is left running is waited for once all is done."""
_LAST_WORDS_S = 10.0
"""How long functions registered with `atexit` may take when there are threads that do not end."""

_SHOWN = 5
"""How many of what is left are named."""

_leave: Callable[[int], NoReturn] = os._exit
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_BETWEEN = (sysconfig.get_paths()["stdlib"] + os.sep, "<frozen")
_advice: Callable[[], str | None] | None = None


@contextmanager
def words_before_the_end() -> Iterator[None]:
    """Have a crash and a call of `os._exit` in this process say where they come from, while the block runs."""
    with suppress(AttributeError, OSError, ValueError, RuntimeError):  # no standard error, or none with a descriptor
        if not faulthandler.is_enabled():
            faulthandler.enable(sys.__stderr__)  # type: ignore[arg-type]  # None is among what is suppressed
    process = os.getpid()

    def told(code: int) -> NoReturn:
        caller = sys._getframe(1)
        if os.getpid() != process or _is_ours(caller):  # a child that was forked ends as it likes
            _leave(code)
        with suppress(Exception):
            _tell_exit(code, caller)
        _leave(code or GrpoError.exit_code)

    vars(os)["_exit"] = told
    try:
        yield
    finally:
        vars(os)["_exit"] = _leave


@contextmanager
def advising(advice: Callable[[], str | None]) -> Iterator[None]:
    """While the block runs, a process that is ended says this too; None: nothing."""
    global _advice
    before, _advice = _advice, advice
    try:
        yield
    finally:
        _advice = before


def as_error(exit_: SystemExit) -> GrpoError:
    """The error that a call of `sys.exit` is, where it is not ours."""
    from grpo_core.plugins.faults import describe

    return GrpoError(
        f"code of a plugin, a model or a recipe ends the program: {describe(exit_)}",
        hint="Have it raise an exception that says what is wrong.",
    )


def end(code: int) -> NoReturn:
    """End this process, which is done, with `code`: threads and child processes that somebody left are waited for some
    seconds, then named and given up."""
    for work in (_give_up, _last_words):
        threading.Thread(target=work, args=[code], daemon=True).start()
    raise SystemExit(code)


_given_up = threading.Event()


def _give_up(code: int) -> None:
    """Runs beside the end of the interpreter, which waits for threads first, then for child processes."""
    time.sleep(WAIT_S)
    threads = [each for each in threading.enumerate() if not each.daemon and each is not threading.main_thread()]
    children = _children()
    if not threads and not children:
        return
    left = [*map(_shown_thread, threads), *(f"process {child.name} ({child.pid})" for child in children)]
    more = f"; and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    shown = "; ".join(left[:_SHOWN]) + more
    _say(
        f"warning: all is done, and after {WAIT_S:g} s these are still running: {shown}. They are given up",
        "whoever starts a thread makes it a daemon, or ends it, and its processes, with the run",
    )
    for child in children:
        child.kill()
    if threads:
        _given_up.set()
        with suppress(Exception):
            atexit._run_exitfuncs()  # what the interpreter would have done next
        _flush()
        _leave(code)


def _last_words(code: int) -> None:
    _given_up.wait()
    time.sleep(_LAST_WORDS_S)
    _leave(code)


def _children() -> list[BaseProcess]:
    """Processes of `multiprocessing` that the end of the interpreter waits for."""
    loaded = sys.modules.get("multiprocessing")
    return [] if loaded is None else [each for each in loaded.active_children() if not each.daemon]


def _tell_exit(code: int, frame: FrameType | None) -> None:
    stack = _foreign(frame)
    where = _shown(stack[0]) if stack else "an unknown place"
    caller = f", called by {_shown(stack[-1])}" if len(stack) > 1 else ""
    advice = _advice() if _advice is not None else None
    _say(
        f"error: os._exit({code}) ends this process, called at {where}{caller}",
        "it is code of a plugin, a reward or another component; have it raise an exception that says what is wrong. In "
        "a worker (`runs_in: worker`) a reward ends nothing else",
        *filter(None, [advice]),
    )
    _flush()


def _foreign(frame: FrameType | None) -> list[FrameType]:
    """The frames of code that is neither ours nor Python's own, innermost first, up to where ours called it."""
    found = []
    while frame is not None and not _is_ours(frame):
        if not frame.f_code.co_filename.startswith(_BETWEEN) or "site-packages" in frame.f_code.co_filename:
            found.append(frame)
        frame = frame.f_back
    return [each for each in found if "pluggy" not in each.f_globals.get("__name__", "")] or found


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_OURS)


def _shown(frame: FrameType) -> str:
    from grpo_core.plugins.faults import short_path

    name = frame.f_code.co_name
    place = f"{short_path(frame.f_code.co_filename)}:{frame.f_lineno}"
    return place if name.startswith("<") else f"{place} in {name}"


def _shown_thread(thread: threading.Thread) -> str:
    stack = _foreign(sys._current_frames().get(thread.ident or 0))
    return f"thread {thread.name} at {_shown(stack[-1])}" if stack else f"thread {thread.name}"


def _say(*lines: str) -> None:
    with suppress(Exception):
        print("\n  ".join(lines), file=sys.stderr, flush=True)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()

"""Signals that end a run: SIGINT (Ctrl-C), SIGTERM and SIGHUP (its terminal is gone), all in the same way.

    first     after the step in progress, with a checkpoint; before training begins: at once
    second    at once, with a checkpoint of the last whole step unless an update has begun
    third     without any more ado

With several processes every one of them gets it, and they agree on the step. The same handler is how a rank's main
thread is woken when another rank has failed.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from grpo_core.ranks.ranks import ALONE, Ranks

__all__ = ["Interrupt", "catch_interrupt", "ends_at_once"]

logger = logging.getLogger("grpo_core")

_EXIT_CODE = 130
_KILL_AT = 3
"""As the launcher of several processes counts."""
Handler = Callable[[int, FrameType | None], None]


class Interrupt:
    """Whether the user asked the run to end, and what must not be cut off."""

    def __init__(self) -> None:
        self.requested = False
        """The run is to end after this step."""
        self.trains = False
        """There are steps, whose end is worth waiting for."""
        self._received = 0
        self._held = False
        self._put_off = False
        self._is_last = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """What happens in the context is not cut off by a second signal, which comes at its end."""
        self._held = True
        try:
            yield
        finally:
            self._held, put_off, self._put_off = False, self._put_off, False
            if put_off:
                raise KeyboardInterrupt

    def begin_last(self) -> None:
        """From here on the run ends, and nothing but the third signal hastens that."""
        self._is_last = True

    def receive(self, number: int, ranks: Ranks) -> None:
        """Take a signal; raises what it means for the main thread."""
        stopped = ranks.stopped()
        if stopped is not None and not self._is_last:
            raise stopped
        if stopped is not None and number == signal.SIGTERM:
            return  # the watch wakes this thread, or a launcher ends it beside others: nobody insists
        if number == signal.SIGHUP and self._received:
            return  # a terminal that closes may say it twice, and nobody is in a hurry
        self._received += 1
        if self._received >= _KILL_AT:
            os._exit(_EXIT_CODE)
        if self._is_last:
            _say(ranks, number, "the run ends with a last checkpoint, if one can be written")
        elif self._received == 1 and self.trains:
            self.requested = True
            _say(ranks, number, "stopping after this step, with a checkpoint; once more to stop at once")
        elif self._held:
            self._put_off = True
        elif self.trains:
            raise KeyboardInterrupt
        else:
            _say(ranks, number, "stopping at once: no step has begun, so there is nothing to save")
            raise KeyboardInterrupt


@contextmanager
def catch_interrupt(ranks: Ranks = ALONE) -> Iterator[Interrupt]:
    """Let the signals end the run as said above. Once the run has failed on another rank, any of them raises that
    failure.

    Outside the main thread, where Python allows no handlers, signals keep their meaning.
    """
    interrupt = Interrupt()
    with _handled_by(lambda number, frame: interrupt.receive(number, ranks)):
        yield interrupt


@contextmanager
def ends_at_once() -> Iterator[None]:
    """Before a run has anything to lose: the first signal ends it, and that is said."""

    def handle(number: int, frame: FrameType | None) -> None:
        logger.warning("stopping at once: nothing is being trained, so nothing is lost")
        raise KeyboardInterrupt

    with _handled_by(handle):
        yield


@contextmanager
def _handled_by(handle: Handler) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handle) for number in _signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _signals() -> list[signal.Signals]:
    """A run that was started to outlive its terminal (nohup) ignores SIGHUP, and goes on doing so."""
    hangs_up = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hangs_up else [])]


def _say(ranks: Ranks, number: int, text: str) -> None:
    """On rank 0; with several ranks not about SIGTERM, by which a launcher ends the others after a death."""
    if ranks.is_first and (number != signal.SIGTERM or ranks.world_size == 1):
        logger.warning(text)

"""Ctrl-C: the first one ends the run after the current step, with a checkpoint; the second one at once.

With several processes every one of them gets it, and they agree on the step. The same handler is how a rank's main
thread is woken when another rank has failed.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from grpo_core.ranks.ranks import ALONE, Ranks

__all__ = ["Interrupt", "catch_interrupt"]

logger = logging.getLogger("grpo_core")


class Interrupt:
    """Whether the user asked the run to end."""

    requested = False


@contextmanager
def catch_interrupt(ranks: Ranks = ALONE) -> Iterator[Interrupt]:
    """Turn the first SIGINT or SIGTERM into a request; the next one raises KeyboardInterrupt. Once the run has failed
    on another rank, any of them raises that failure.

    Outside the main thread, where Python allows no handlers, signals keep their meaning.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handle(number: int, frame: FrameType | None) -> None:
        stopped = ranks.stopped()
        if stopped is not None:
            raise stopped
        if interrupt.requested:
            raise KeyboardInterrupt
        interrupt.requested = True
        if ranks.is_first and number == signal.SIGINT:  # a launcher that ends the others after a death uses SIGTERM
            logger.warning("stopping after this step, with a checkpoint; once more to stop at once")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

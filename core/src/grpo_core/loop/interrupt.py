"""Ctrl-C: the first one ends the run after the current step, with a checkpoint; the second one at once."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupt", "catch_interrupt"]

logger = logging.getLogger("grpo_core")


class Interrupt:
    """Whether the user asked the run to end."""

    requested = False


@contextmanager
def catch_interrupt() -> Iterator[Interrupt]:
    """Turn the first SIGINT or SIGTERM into a request; the next one raises KeyboardInterrupt.

    Outside the main thread, where Python allows no handlers, signals keep their meaning.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if interrupt.requested:
            raise KeyboardInterrupt
        interrupt.requested = True
        logger.warning("stopping after this step, with a checkpoint; once more to stop at once")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""A function that does not end is ended, in any thread; one that ends is left alone."""

from __future__ import annotations

import contextlib
import threading
import time
from functools import partial

import pytest

from grpo_core.model.time_limit import run_limited


def endless() -> None:
    while True:
        with contextlib.suppress(Exception):  # whatever a program catches
            sum(range(100))


def sleep_in_pieces(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.0005)


def test_what_ends_gives_its_result_or_its_error() -> None:
    assert run_limited(lambda: 3, limit_s=0.5) == 3
    with pytest.raises(ZeroDivisionError):
        run_limited(lambda: 1 // 0, limit_s=0.5)


def test_what_does_not_end_is_ended_in_any_thread() -> None:
    told: list[str] = []

    def run() -> None:
        with pytest.raises(TimeoutError) as caught:
            run_limited(endless, limit_s=0.5)
        told.append(str(caught.value))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    run()
    for thread in threads:
        thread.join()
    assert told == ["it does not end: 0.5 s were not enough"] * 4


def test_nothing_is_raised_after_the_end() -> None:
    """Functions that end just when they are to be ended: what comes after them is not hit."""
    for number in range(12):
        with contextlib.suppress(TimeoutError):
            run_limited(partial(sleep_in_pieces, 0.24 + 0.002 * number), limit_s=0.25)
        for _ in range(1000):
            pass
    assert run_limited(lambda: 1, limit_s=0.25) == 1

"""What a launcher does with signals: ranks are asked to end the run, and a closing terminal hurries nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from grpo_core.ranks.launcher import _Agent

RANK = """
import signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: print(signal.Signals(number).name, flush=True))
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""


@contextmanager
def passing() -> Iterator[subprocess.Popen[str]]:
    """A process that prints what it is sent, under an agent that passes signals of this process on."""
    with subprocess.Popen([sys.executable, "-c", RANK], stdout=subprocess.PIPE, text=True) as rank:
        assert rank.stdout is not None
        assert rank.stdout.readline() == "ready\n"
        agent = _Agent.__new__(_Agent)
        agent._pcontext = SimpleNamespace(pids=lambda: {0: rank.pid})
        try:
            with agent.passing_signals():
                yield rank
        finally:
            rank.kill()


def heard(rank: subprocess.Popen[str], numbers: Sequence[int]) -> list[str]:
    """What a rank prints of signals that this process gets one after the other."""
    assert rank.stdout is not None
    for number in numbers:
        os.kill(os.getpid(), number)
        time.sleep(0.2)
    rank.kill()
    return rank.stdout.read().split()


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([signal.SIGHUP], ["SIGTERM"]),
        ([signal.SIGHUP, signal.SIGHUP, signal.SIGHUP], ["SIGTERM"]),
        ([signal.SIGTERM, signal.SIGHUP], ["SIGTERM"]),
        ([signal.SIGHUP, signal.SIGINT], ["SIGTERM", "SIGINT"]),
        ([signal.SIGINT, signal.SIGTERM], ["SIGINT", "SIGTERM"]),
    ],
)
def test_ranks_are_asked_to_end_once_a_signal_and_once_for_a_terminal_that_closes(
    numbers: list[int], expected: list[str]
) -> None:
    with passing() as rank:
        assert heard(rank, numbers) == expected


def test_the_third_signal_kills() -> None:
    with passing() as rank:
        heard(rank, [signal.SIGINT, signal.SIGTERM])
        os.kill(os.getpid(), signal.SIGINT)
        assert rank.wait(10) == -signal.SIGKILL


def test_a_launcher_that_was_told_to_ignore_hangups_does() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with passing() as rank:
            assert heard(rank, [signal.SIGHUP]) == []
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_handlers_of_before_are_there_afterwards() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    with passing():
        assert [signal.getsignal(number) for number in numbers] != before
    assert [signal.getsignal(number) for number in numbers] == before

"""Signals that end a run, sent to this process for real."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from grpo_core.errors import RewardError
from grpo_core.loop.interrupt import Interrupt, catch_interrupt, ends_at_once
from grpo_core.ranks.ranks import Alone

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_asks_for_the_end_of_the_step_and_the_second_ends_it(
    number: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    with catch_interrupt() as interrupt:
        interrupt.trains = True
        signal.raise_signal(number)
        assert interrupt.requested
        assert "stopping after this step, with a checkpoint" in caplog.messages[0]
        signal.raise_signal(signal.SIGHUP)  # a terminal may say twice that it is gone
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("number", SIGNALS)
def test_before_the_first_step_a_signal_ends_at_once_and_says_that_nothing_is_saved(
    number: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    with catch_interrupt(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    assert caplog.messages[0] == "stopping at once: no step has begun, so there is nothing to save"


@pytest.mark.parametrize("number", SIGNALS)
def test_before_there_is_a_run_the_same(number: signal.Signals, caplog: pytest.LogCaptureFixture) -> None:
    with ends_at_once(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    assert "nothing is lost" in caplog.messages[0]


def test_a_second_signal_waits_for_what_is_held() -> None:
    written = []
    with catch_interrupt() as interrupt:
        interrupt.trains = True
        signal.raise_signal(signal.SIGINT)

        def write() -> None:
            with interrupt.held():
                signal.raise_signal(signal.SIGINT)
                written.append("checkpoint")

        with pytest.raises(KeyboardInterrupt):
            write()
        assert written == ["checkpoint"]
        with interrupt.held():
            pass  # it has come, and does not come again


def test_a_run_that_ends_is_not_hastened_by_two_signals() -> None:
    with catch_interrupt() as interrupt:
        interrupt.trains = True
        interrupt.begin_last()
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)


def test_the_third_signal_ends_the_process_whatever_it_does() -> None:
    script = (
        "import signal\n"
        "from grpo_core.loop.interrupt import catch_interrupt\n"
        "with catch_interrupt() as interrupt:\n"
        "    interrupt.trains = True\n"
        "    interrupt.begin_last()\n"
        "    for _ in range(3):\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    print('still there')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")


def test_a_run_that_ignores_hang_ups_goes_on_doing_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with catch_interrupt() as interrupt:
            interrupt.trains = True
            signal.raise_signal(signal.SIGHUP)
            assert not interrupt.requested
    finally:
        signal.signal(signal.SIGHUP, before)


class Failed(Alone):
    """A rank that has heard of another one's failure."""

    def stopped(self) -> BaseException | None:
        return RewardError("rank 1: the reward is broken")


def test_the_failure_of_another_rank_wakes_up_unless_this_one_ends_already() -> None:
    with catch_interrupt(Failed()) as interrupt:
        interrupt.trains = True
        with pytest.raises(RewardError):
            signal.raise_signal(signal.SIGTERM)
        interrupt.begin_last()
        for _ in range(5):  # nobody insists: it is the watch, or a launcher
            signal.raise_signal(signal.SIGTERM)


def test_handlers_are_what_they_were_afterwards() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with ends_at_once(), catch_interrupt():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before
    assert not Interrupt().requested

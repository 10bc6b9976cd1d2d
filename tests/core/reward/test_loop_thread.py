"""Asynchronous rewards wait together, and one that blocks does not hang the run."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from grpo_core.reward import loop_thread
from grpo_core.reward.loop_thread import LoopThread
from grpo_core.types import Failed
from tests.core.reward import rewards_of_a_user as rewards


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    made = LoopThread()
    yield made
    made.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "reward-loop" and not thread.daemon]


def submit(loop: LoopThread, function: object, *texts: str, deadline_s: float = 20.0):
    return loop.submit(
        function,
        {"completions": list(texts)},
        count=len(texts),
        records=False,
        deadline_s=deadline_s,  # type: ignore[arg-type]
    )


def test_calls_wait_together(loop: LoopThread) -> None:
    began = time.monotonic()
    results = [submit(loop, rewards.slowly, "a", "b", "c") for _call in range(20)]
    assert [result().outcomes for result in results] == [(1.0, None, 0.0)] * 20
    assert time.monotonic() - began < 3.8, "20 calls of 0.2 s each"


def test_a_result_can_be_asked_for_twice(loop: LoopThread) -> None:
    result = submit(loop, rewards.slowly, "a")
    assert result() == result()


def test_a_call_over_its_deadline_is_cancelled_and_has_failed(loop: LoopThread) -> None:
    result = submit(loop, rewards.never, "a", "b", deadline_s=0.1)
    assert result().outcomes == (Failed("took longer than its deadline of 0.1 s"),) * 2


def test_a_timeout_that_the_reward_raises_itself_is_its_own(loop: LoopThread) -> None:
    (outcome,) = submit(loop, rewards.raises_later, "a")().outcomes
    assert isinstance(outcome, Failed)
    assert outcome.reason.startswith("raised TimeoutError: the judge did not answer")


def test_a_reward_that_blocks_the_loop_fails_and_later_calls_get_a_new_loop(
    loop: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_thread, "_GRACE_S", 0.1)
    (outcome,) = submit(loop, rewards.blocks, "a", deadline_s=0.1)().outcomes
    assert isinstance(outcome, Failed)
    assert "an asynchronous reward blocks" in outcome.reason
    assert submit(loop, rewards.slowly, "a")().outcomes == (1.0,)


def test_closing_cancels_what_still_waits(loop: LoopThread) -> None:
    submit(loop, rewards.never, "a")
    time.sleep(0.05)
    began = time.monotonic()
    loop.close()
    assert time.monotonic() - began < 10.0, "its deadline is 20 s"


def test_finalizers_are_awaited_on_the_loop_of_the_calls_and_one_that_fails_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop, where = LoopThread(), []

    async def called(completions: list[str]) -> list[float]:
        where.append(asyncio.get_running_loop())
        return [0.0] * len(completions)

    async def fails() -> None:
        raise OSError("already gone")

    async def closes() -> None:
        where.append(asyncio.get_running_loop())

    submit(loop, called, "a")()
    loop.close([fails, closes])
    assert len(where) == 2
    assert where[0] is where[1]
    assert "a reward could not be closed: OSError: already gone" in caplog.text


def test_a_reward_that_was_never_called_is_not_closed() -> None:
    async def closes() -> None:
        raise AssertionError

    LoopThread().close([closes])


def test_a_task_that_ends_the_program_ends_neither_the_loop_nor_the_run(caplog: pytest.LogCaptureFixture) -> None:
    loop = LoopThread()

    async def leaves() -> None:
        sys.exit(0)

    async def called(completions: list[str]) -> list[float]:
        task = asyncio.get_running_loop().create_task(leaves())
        await asyncio.sleep(0.05)
        return [float(task.done())] * len(completions)

    assert submit(loop, called, "a")().outcomes == (1.0,)
    assert "a task of an asynchronous reward was ended: it calls sys.exit(0) (" in caplog.text
    loop.close([leaves])
    assert "a reward could not be closed: it calls sys.exit(0) (" in caplog.text

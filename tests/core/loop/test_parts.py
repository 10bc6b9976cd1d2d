"""The parts of a run are closed whatever happens, and what fails there hides nothing."""

from __future__ import annotations

import logging

import pytest

from grpo_core.errors import RewardError
from grpo_core.loop.parts import closing


def fails() -> None:
    raise ValueError("it does not close")


def ends() -> None:
    raise SystemExit(0)


def test_a_fault_of_closing_is_a_note_on_the_fault_before() -> None:
    closed: list[str] = []
    with (
        pytest.raises(RewardError, match="the reward is broken") as caught,
        closing("the rewards", lambda: closed.append("rewards")),
        closing("the trainer", ends),
        closing("the rollout backend", fails),
    ):
        raise RewardError("the reward is broken")
    assert closed == ["rewards"]
    first, second = caught.value.__notes__
    assert first.startswith("closing the rollout backend failed as well: ValueError: it does not close (")
    assert second.startswith("closing the trainer failed as well: it calls sys.exit(0)")


def test_a_fault_of_closing_alone_is_said_and_takes_nothing_from_what_was_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR, logger="grpo_core"), closing("the trainer", fails):
        pass
    assert caplog.records[0].getMessage().startswith("closing the trainer failed: ValueError: it does not close (")

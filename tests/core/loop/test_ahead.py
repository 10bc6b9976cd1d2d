"""Completions that are drawn one step ahead."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from grpo_core.errors import RolloutError
from grpo_core.loop.ahead import Ahead, Asked
from grpo_core.loop.shares import Piece
from grpo_core.types import RolloutGroup, RolloutRequest
from tests.core.loop.make import scored_group


def asked(number: int) -> Asked:
    request = scored_group([1.0], sample_id=f"train-{number}").group.request
    return Asked(requests=[request], mine={Piece(0, 0, 1): request}, data={"at": number})


def answers(requests: Sequence[RolloutRequest]) -> Sequence[RolloutGroup]:
    return [RolloutGroup(request=request, completions=()) for request in requests]


def test_what_is_taken_is_what_was_asked_for_that_step_with_where_the_data_stood() -> None:
    ahead = Ahead(answers)
    assert not ahead.has_begun(1)
    ahead.begin(1, asked(1))
    taken, groups = ahead.take(1)
    assert ahead.has_begun(1)
    assert taken.data == {"at": 1}
    assert [group.sample.id for group in groups] == ["train-1"]


def test_settling_waits_until_nothing_is_drawn() -> None:
    go, drawn = threading.Event(), list[str]()

    def slow(requests: Sequence[RolloutRequest]) -> Sequence[RolloutGroup]:
        go.wait(120)
        drawn.append("done")
        return answers(requests)

    ahead = Ahead(slow)
    ahead.settle()  # nothing has begun
    ahead.begin(1, asked(1))
    threading.Timer(0.05, go.set).start()
    ahead.settle()
    assert drawn == ["done"]


def test_a_run_that_ends_waits_for_what_is_drawn_no_longer_than_its_limit() -> None:
    go = threading.Event()
    ahead = Ahead(lambda requests: answers(requests) if go.wait(120) else ())
    ahead.begin(1, asked(1))
    ahead.settle(0.0)
    go.set()
    assert len(ahead.take(1)[1]) == 1


def test_what_a_backend_raises_is_raised_where_it_is_waited_for() -> None:
    def failing(requests: Sequence[RolloutRequest]) -> Sequence[RolloutGroup]:
        raise ZeroDivisionError("in a backend")

    ahead = Ahead(failing)
    ahead.begin(1, asked(1))
    ahead.settle()
    with pytest.raises(ZeroDivisionError, match="in a backend"):
        ahead.take(1)


def test_a_step_that_was_never_begun_is_an_error() -> None:
    ahead = Ahead(answers)
    ahead.begin(1, asked(1))
    with pytest.raises(RolloutError, match="the completions of step 3 were never begun; those of 1 were"):
        ahead.take(3)

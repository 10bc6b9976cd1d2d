"""The board of two ranks in one process, on a store that is a dictionary."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from grpo_core.errors import RankError, RewardError
from grpo_core.ranks.board import Board
from grpo_core.ranks.failure import Failure, PeerError, failure_of, named


class DictStore:
    """A store that all boards of a test share."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._lock = threading.Lock()

    def set(self, key: str, text: str) -> None:
        self.texts[key] = text

    def get(self, key: str) -> str:
        return self.texts[key]

    def has(self, keys: Sequence[str]) -> bool:
        return all(key in self.texts for key in keys)

    def delete(self, key: str) -> None:
        self.texts.pop(key, None)

    def set_first(self, key: str, text: str) -> str:
        with self._lock:
            return self.texts.setdefault(key, text)


def boards(store: DictStore, limit_s: float = 5.0) -> tuple[Board, Board]:
    return Board(store, rank=0, world_size=2, limit_s=limit_s), Board(store, rank=1, world_size=2, limit_s=limit_s)


def in_thread(function: object) -> threading.Thread:
    thread = threading.Thread(target=function)  # type: ignore[arg-type]
    thread.start()
    return thread


def test_whoever_comes_first_waits_for_the_other() -> None:
    first, second = boards(DictStore())
    for board in (first, second):
        board.enter("score")
    thread = in_thread(first.arrive)
    thread.join(0.1)
    assert thread.is_alive()
    position = second.position(0)
    assert position is not None
    assert position.waits
    second.arrive()
    thread.join(5)
    assert not thread.is_alive()


def test_a_wait_that_is_too_long_says_who_waits_for_whom_and_since_when() -> None:
    first, second = boards(DictStore(), limit_s=0.05)
    first.enter("score")
    second.enter("rollout")
    pattern = (
        r"rank 0 waited 0 s in 'score' for rank 1, which has been in 'rollout' since \d\d:\d\d:\d\d \(process \d+\)"
    )
    with pytest.raises(RankError, match=pattern) as caught:
        first.arrive()
    assert "run.wait_limit_s" in (caught.value.hint or "")


def test_a_rank_that_never_came_up_is_named_too() -> None:
    first, _ = boards(DictStore(), limit_s=0.05)
    first.enter("start")
    with pytest.raises(RankError, match="for rank 1, which has not come up"):
        first.arrive()


def test_a_failure_ends_every_wait_with_the_first_one_that_was_posted() -> None:
    first, second = boards(DictStore())
    mine = failure_of(RewardError("the reward is broken", hint="mend it"), rank=1)
    assert second.post(mine) == mine
    assert first.post(failure_of(RewardError("another"), rank=0)) == mine
    with pytest.raises(PeerError, match="rank 1: the reward is broken") as caught:
        first.arrive()
    assert (caught.value.hint, caught.value.exit_code) == ("mend it", 4)


def test_waits_in_different_stages_are_a_fault_that_is_said() -> None:
    first, second = boards(DictStore())
    first.enter("score")
    second.enter("evaluation")

    def arrive() -> None:
        with pytest.raises(RankError):
            first.arrive()

    thread = in_thread(arrive)
    with pytest.raises(RankError, match="in different stages, in order of rank: score, evaluation"):
        second.arrive()
    thread.join(5)


def test_the_board_is_cleaned_up_behind_the_ranks() -> None:
    store = DictStore()
    both = boards(store)
    for _ in range(20):
        thread = in_thread(both[0].arrive)
        both[1].arrive()
        thread.join(5)
    assert len([key for key in store.texts if key.startswith("wait/")]) <= 6


def test_a_failure_survives_the_way_as_text() -> None:
    failure = Failure(rank=1, by=0, message="rank 1 died", hint=None, exit_code=4)
    assert Failure.from_text(failure.to_text()) == failure


def test_an_interrupt_and_a_fault_of_the_program_have_their_words_and_exit_codes() -> None:
    interrupted = failure_of(KeyboardInterrupt(), rank=0)
    assert (interrupted.message, interrupted.exit_code) == ("interrupted", 130)
    fault = failure_of(ZeroDivisionError("division by zero"), rank=2)
    assert (fault.message, fault.exit_code) == ("rank 2: ZeroDivisionError: division by zero", 4)


def test_a_message_that_speaks_of_ranks_is_not_named_again() -> None:
    assert named(1, "rank 1 waited") == "rank 1 waited"
    assert named(1, "no column") == "rank 1: no column"

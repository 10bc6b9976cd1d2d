import os
from collections.abc import Iterator

import pytest
import torch

from grpo_core.loop.checkpoint import LoopState
from grpo_core.loop.threads import settle_threads


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _state(threads: int = 0, processes: int = 0) -> LoopState:
    return LoopState(step=2, version=2, zero_reward_steps=0, fingerprint="abc", threads=threads, processes=processes)


def _settled(state: LoopState, *, processes: int = 1) -> tuple[int, int, int]:
    """What the state says afterwards, and what torch computes with."""
    after = settle_threads(state, processes=processes)
    return after.threads, after.processes, torch.get_num_threads()


def test_a_new_run_remembers_what_it_computes_with() -> None:
    assert _settled(_state()) == (1, 1, 1)


def test_a_resumed_run_has_the_threads_it_began_with(caplog: pytest.LogCaptureFixture) -> None:
    assert _settled(_state(threads=3, processes=1)) == (3, 1, 3)
    assert not caplog.messages


def test_threads_chosen_by_the_user_stay_and_are_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(os.environ, "OMP_NUM_THREADS", "1")
    assert _settled(_state(threads=3, processes=1)) == (1, 1, 1)
    assert caplog.messages == [
        "OMP_NUM_THREADS is 1, and the run so far had 3: its numbers may differ in the last bits from those of a run "
        "that was never stopped"
    ]
    assert _settled(_state(threads=1, processes=1)) == (1, 1, 1)
    assert len(caplog.messages) == 1


def test_with_another_number_of_processes_the_cores_are_divided_anew() -> None:
    assert _settled(_state(threads=4, processes=1), processes=2) == (1, 2, 1)

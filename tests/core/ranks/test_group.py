"""Two real processes: what they tell each other, and how they fail together. Each is killed, blocked or broken for
real; the scenes are in `scenes.py`."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.ranks import RankRan, end_ranks, run_ranks, start_ranks

SCENES = "tests.core.ranks.scenes"


def ended(scene: str, *, limit_s: float = 60.0) -> tuple[RankRan, RankRan]:
    first, second = end_ranks(start_ranks(2, f"{SCENES}:{scene}", limit_s=limit_s))
    return first, second


def test_everyone_hears_everyone(tmp_path: Path) -> None:
    run_ranks(3, f"{SCENES}:talks", tmp_path)
    said = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(3)]
    assert all(each["gather"] == ["from 0", "from 1", "from 2"] for each in said)
    assert [each["collect"] for each in said] == [[[], [1], [2, 2]], [], []]
    assert all(each["from_first"] == "plan" for each in said)
    assert said[2]["exchange"] == ["0 to 20 to 2", "1 to 21 to 2", "2 to 22 to 2"]


def test_an_error_of_one_rank_stops_all_with_its_own_words() -> None:
    first, second = ended("rank_one_fails")
    assert (first.returncode, second.returncode) == (4, 4)
    assert first.stderr == "PeerError: rank 1: the reward is broken\n  mend it\n"
    assert second.stderr == "RewardError: the reward is broken\n  mend it\n"


def test_a_killed_rank_is_named_with_what_the_other_waited_for() -> None:
    first, second = ended("rank_one_dies")
    assert second.returncode == -signal.SIGKILL
    assert first.returncode == 4
    assert "rank 1 died in 'rollout'" in first.stderr
    assert "while rank 0 waited for it in 'rollout'" in first.stderr


def test_a_blocked_rank_ends_the_wait_at_its_limit() -> None:
    first, second = ended("rank_one_is_blocked", limit_s=1.0)
    assert (first.returncode, second.returncode) == (4, 4)
    assert "rank 0 waited 1 s in 'score' for rank 1, which has been in 'rollout' since " in first.stderr


@pytest.mark.slow
@pytest.mark.parametrize("scene", ["rank_zero_dies", "rank_one_dies_in_a_collective"])
def test_a_death_ends_the_others_within_seconds_wherever_they_are(scene: str) -> None:
    processes = start_ranks(2, f"{SCENES}:{scene}")
    dying, other = (processes[0], processes[1]) if scene == "rank_zero_dies" else (processes[1], processes[0])
    dying.wait(60)
    died_s = time.monotonic()
    other.wait(60)
    assert time.monotonic() - died_s < 15
    ends = end_ranks([dying, other])
    assert other.returncode == 4
    assert any(word in ends[1].stderr for word in ("rank 1 died", "rank 0 died", "or rank 0) died"))


@pytest.mark.slow
def test_a_rank_that_is_blocked_in_a_collective_is_named() -> None:
    first, _ = ended("rank_one_is_blocked_in_a_collective", limit_s=2.0)
    assert first.returncode == 4
    assert "rank 0 waited 2 s in 'update' for rank 1, which has been in 'update' since " in first.stderr


@pytest.mark.slow
def test_a_rank_that_only_computes_is_stopped_as_well() -> None:
    first, second = ended("rank_one_fails_while_rank_zero_computes")
    assert (first.returncode, second.returncode) == (4, 4)
    assert "the reward is broken" in second.stderr


@pytest.mark.slow
def test_an_error_that_all_ranks_have_is_rank_zeros() -> None:
    first, second = ended("all_fail_alike")
    assert first.stderr == "RewardError: no column 'answer'\n"
    assert second.stderr == "PeerError: rank 0: no column 'answer'\n"


@pytest.mark.slow
def test_a_rank_that_is_done_waits_for_the_others_to_be_done() -> None:
    run_ranks(2, f"{SCENES}:ends_at_different_times")


def test_after_a_failure_all_ranks_meet_once_more(tmp_path: Path) -> None:
    first, second = end_ranks(start_ranks(2, f"{SCENES}:all_meet_after_a_failure", tmp_path))
    assert (first.returncode, second.returncode) == (4, 4)
    assert "PeerError: rank 1: the reward is broken" in first.stderr
    assert "RewardError: the reward is broken" in second.stderr
    for rank in range(2):
        assert json.loads((tmp_path / f"{rank}.json").read_text()) == [1, None, ["from 0", "from 1"]]


@pytest.mark.slow
def test_a_dead_rank_is_not_waited_for() -> None:
    first, _ = ended("rank_one_dies_before_they_meet")
    assert "not met after 0 s: rank 1 is gone" in first.stderr
    assert "rank 1 died" in first.stderr


@pytest.mark.slow
def test_a_rank_that_nothing_wakes_up_is_ended_and_not_waited_for() -> None:
    first, second = ended("rank_one_is_stuck_in_a_collective")
    assert second.returncode == 4
    assert "not met after " in first.stderr
    assert "rank 1 died" in first.stderr
    assert first.stderr.endswith("RewardError: the reward is broken\n")


@pytest.mark.slow
def test_a_rank_that_dies_while_they_save_ends_that_and_the_first_failure_is_told() -> None:
    first, _ = ended("rank_one_dies_while_they_save")
    assert "second: rank 1 died in 'checkpoint'" in first.stderr
    assert first.stderr.endswith("PeerError: rank 1: the reward is broken\n")


@pytest.mark.slow
def test_an_exchange_that_was_cut_off_is_an_obstacle() -> None:
    first, second = ended("an_exchange_is_cut_off")
    assert "obstacles: ['None', 'ranks were in the middle of an exchange']" in first.stderr + second.stderr

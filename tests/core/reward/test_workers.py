"""Killable workers: whatever a reward does to its process, only its own answer is affected."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from grpo_core.errors import RecipeError, RewardError
from grpo_core.reward import workers
from grpo_core.reward.call import CallResult
from grpo_core.reward.wire import WorkerTarget
from grpo_core.reward.workers import Job, WorkerPool, workers_for
from grpo_core.types import BuildContext, Failed
from tests.core.reward import rewards_of_a_user as rewards
from tests.core.reward.making import REWARDS_FILE
from tests.processes import below, open_files, wait_until_gone


def target(attribute: str, options_model: str | None = None) -> WorkerTarget:
    return WorkerTarget(target=f"{REWARDS_FILE}:{attribute}", options_model=options_model, options={})


@contextmanager
def pool(*names: str, workers: int = 2, rank: int = 0, **targets: WorkerTarget) -> Iterator[WorkerPool]:
    targets = {name: target(name) for name in names} | targets
    made = WorkerPool(targets, workers=workers, context=BuildContext(rank=rank))
    try:
        yield made
    finally:
        made.close()


def job(text: str, reward: str = "by_text", **changes: Any) -> Job:
    settings: dict[str, Any] = {
        "reward": reward,
        "arguments": {"completions": [text]},
        "count": 1,
        "records": False,
        "budget_s": None,
        "deadline_s": 20.0,
    }
    return Job(**settings | changes)


def ask(made: WorkerPool, *texts: str, **changes: Any) -> list[Any]:
    futures = [made.submit(job(text, **changes)) for text in texts]
    return [future.result(60).outcomes[0] for future in futures]


def facts(made: WorkerPool) -> Mapping[str, tuple[Any, ...]]:
    result: CallResult = made.submit(job("x", "process_facts", records=True)).result(60)
    return result.records


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    threads = threading.active_count()
    before, files = set(below()), open_files()
    yield
    assert set(below()) <= before
    assert threading.active_count() <= threads
    assert open_files() <= files


def test_a_dead_worker_costs_its_own_answer_and_says_how_it_died() -> None:
    with pool("by_text") as made:
        assert ask(made, "score 1", "die", "score 0.5", "kill", "segfault", "score 0.25") == [
            1.0,
            Failed("its worker died: exit code 137"),
            0.5,
            Failed("its worker died: killed by SIGKILL, perhaps for want of memory"),
            Failed("its worker died: killed by SIGSEGV"),
            0.25,
        ]


@pytest.mark.parametrize("misdeed", ["hang", "spin", "ignore-signals"])
def test_an_answer_over_its_budget_is_wrong(misdeed: str) -> None:
    with pool("by_text") as made:
        began = time.monotonic()
        assert ask(made, misdeed, "score 1", budget_s=0.3) == [0.0, 1.0]
        assert time.monotonic() - began < 60


def test_a_call_over_its_deadline_has_failed() -> None:
    with pool("by_text") as made:
        assert ask(made, "hang", "score 1", deadline_s=0.5) == [
            Failed("took longer than its deadline of 0.5 s"),
            1.0,
        ]


def test_the_deadline_holds_where_the_budget_is_longer() -> None:
    with pool("by_text") as made:
        assert ask(made, "hang", budget_s=60.0, deadline_s=0.3) == [Failed("took longer than its deadline of 0.3 s")]


def test_time_in_the_queue_counts_for_nothing() -> None:
    with pool("by_text", workers=1) as made:
        assert ask(made, *["sleep 0.3"] * 4, budget_s=0.9, deadline_s=0.9) == [1.0] * 4


def test_what_an_answer_left_behind_in_a_worker_is_not_the_next_ones_failure() -> None:
    with pool("by_text", workers=1) as made:
        assert ask(made, "die-later", "sleep 1.5", "score 0.5") == [1.0, 1.0, 0.5]


def test_a_worker_that_died_while_idle_is_replaced() -> None:
    with pool("by_text", workers=1) as made:
        assert ask(made, "die-later") == [1.0]
        time.sleep(1.2)
        assert ask(made, "score 0.5") == [0.5]


def test_exceptions_exits_and_wrong_returns_fail_with_their_reason() -> None:
    with pool("by_text") as made:
        raised, left, not_a_number, none = ask(made, "raise x", "exit 3", "nan", "none")
    assert raised.reason.startswith("raised KeyError: 'x' (rewards_of_a_user.py:")
    assert left.reason.startswith("it calls sys.exit(3)")
    assert not_a_number == Failed("returned nan, which is not a finite number")
    assert none is None


def test_noise_on_stdout_and_stderr_does_not_disturb(capfd: pytest.CaptureFixture[str]) -> None:
    with pool("by_text") as made:
        assert ask(made, "noise", "score 1", "noise") == [1.0] * 3
    seen = capfd.readouterr()
    assert "noise on stdout" in seen.err
    assert seen.out == "", "the trainer's stdout stays its own"


def test_noise_on_the_workers_own_socket_costs_its_answer() -> None:
    with pool("by_text") as made:
        assert ask(made, "write-to-sockets", "score 1") == [
            Failed("its worker's answer was garbled: something else wrote to its socket"),
            1.0,
        ]


def test_what_an_answer_started_is_killed_with_its_worker(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with pool("by_text") as made:
        for budget_s in (
            0.5,
            2.0,
            8.0,
            15.0,
        ):  # however slow this machine is, in one of them it gets to start something
            assert ask(made, f"spawn {pid}", budget_s=budget_s) == [0.0]
            if pid.exists() and pid.read_text():
                break
        assert wait_until_gone([int(pid.read_text())]) == []


def test_workers_never_imported_torch_and_are_children_of_the_zygote() -> None:
    with pool("process_facts") as made:
        found = facts(made)
    assert found["torch"] == (False,)
    assert found["parent"] != (os.getpid(),)


def test_a_worker_serves_many_calls() -> None:
    with pool("process_facts", workers=1) as made:
        assert len({facts(made)["pid"] for _call in range(20)}) == 1


def test_an_async_reward_runs_in_a_worker_too() -> None:
    with pool("slowly") as made:
        assert ask(made, "x", reward="slowly") == [1.0]


def test_the_zygote_is_restarted_once_a_step_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    lost = Failed("its worker died: together with the process that starts workers")
    with pool("by_text", workers=1) as made:
        assert ask(made, "kill-parent", "score 1") == [lost, 1.0]
        assert "the process that starts reward workers died" in caplog.text
        none_left = Failed("got no worker: the process that starts them died twice in a step")
        assert ask(made, "kill-parent", "score 1", "score 0") == [lost, none_left, none_left]
        made.begin_step()
        assert ask(made, "score 1") == [1.0]


def test_a_target_that_cannot_be_imported_is_an_error_at_the_start() -> None:
    with pytest.raises(RewardError, match=r"a reward that runs in a worker: .*has no 'nothing'"), pool("nothing"):
        pass


def test_a_module_that_ends_the_process_at_import_is_an_error_at_the_start(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("import os\nos._exit(5)\n")
    broken = WorkerTarget(target=f"{bad}:reward", options_model=None, options={})
    with pytest.raises(RewardError, match=r"ended while it imported the rewards \(exit code 5\)"), pool(bad=broken):
        pass


OPTIONS = "grpo_core.reward.builtin.options:RepetitionOptions"


def test_a_factory_that_fails_or_crashes_in_a_worker_fails_its_calls() -> None:
    factories = {name: target(name, OPTIONS) for name in ("failing_factory", "crashing_factory")}
    with pool(rank=1, **factories) as made:
        (failed,) = ask(made, "x", reward="failing_factory")
        assert "could not be built: OSError: no such table" in failed.reason
        assert ask(made, "x", reward="crashing_factory") == [Failed("its worker died before the call: exit code 7")]


def test_columns_that_cannot_travel_fail_their_call_alone() -> None:
    with pool("as_told", "by_text") as made:
        unsendable = made.submit(job("0", "as_told", arguments={"completions": ["0"], "outcomes": [[lambda: 1]]}))
        unreadable = made.submit(
            job("0", "as_told", arguments={"completions": ["0"], "outcomes": [[rewards.Unpicklable()]]})
        )
        (no_send,), (no_read,) = unsendable.result(20).outcomes, unreadable.result(20).outcomes
        assert ask(made, "score 1") == [1.0]
    assert isinstance(no_send, Failed)
    assert no_send.reason.startswith("its columns cannot be sent to a worker: ")
    assert isinstance(no_read, Failed)
    assert no_read.reason.startswith("cannot be called in a worker: ")


def test_recorded_objects_arrive_as_json_values() -> None:
    with pool("records_objects", "records_a_cycle") as made:
        odd = made.submit(job("x", "records_objects", records=True)).result(20)
        cycle = made.submit(job("x", "records_a_cycle", records=True)).result(20)
    assert odd.records["odd"][0].startswith("<object object at")
    assert "recorded values that have no JSON form" in cycle.outcomes[0].reason


def test_large_arguments_arrive_whole() -> None:
    text = "score 1" + " " * 3_000_000
    with pool("by_text") as made:
        assert ask(made, text, text) == [1.0, 1.0]


def test_close_kills_what_still_runs_and_cancels_what_waits() -> None:
    made = WorkerPool({"by_text": target("by_text")}, workers=1, context=BuildContext())
    running, waiting = made.submit(job("hang")), made.submit(job("score 1"))
    time.sleep(0.3)
    began = time.monotonic()
    made.close()
    assert time.monotonic() - began < 60
    assert isinstance(running.result(60).outcomes[0], Failed)
    assert waiting.cancelled()


def test_many_deaths_leave_no_zombie_and_no_open_file() -> None:
    others = set(below())
    with pool("by_text") as made:
        ask(made, "score 1")
        files = open_files()
        ask(made, *["die", "hang"] * 20, budget_s=0.05)
        ask(made, "score 1", "score 1")
        made_here = {process: state for process, state in below().items() if process not in others}
        assert len(made_here) <= 1 + 2, "a zygote and two workers"
        assert "Z" not in made_here.values()
        assert open_files() <= files + 2


SCRIPT = """
    import os, signal, sys, time
    from grpo_core.reward.wire import WorkerTarget
    from grpo_core.reward.workers import Job, WorkerPool
    from grpo_core.types import BuildContext
    target = WorkerTarget(target=sys.argv[1] + ":by_text", options_model=None, options={})
    pool = WorkerPool({"by_text": target}, workers=2, context=BuildContext())
    for _ in range(2):
        arguments = {"completions": ["hang"]}
        pool.submit(Job(reward="by_text", arguments=arguments, count=1, records=False, budget_s=None, deadline_s=600))
    time.sleep(0.5)
    print("ready", flush=True)
    if sys.argv[2] == "wait":
        time.sleep(600)
"""


@pytest.mark.parametrize("way", ["killed", "ends"])
def test_when_the_trainer_is_gone_so_are_its_workers(way: str) -> None:
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(REWARDS_FILE), "wait" if way == "killed" else "end"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as trainer:
        assert trainer.stdout is not None
        family: list[int] = []
        if way == "killed":
            assert trainer.stdout.readline() == "ready\n"
            family = list(below(trainer.pid))
            assert len(family) == 3, "a zygote and two workers"
            trainer.kill()
        assert trainer.wait(120) == (-signal.SIGKILL if way == "killed" else 0)
    assert wait_until_gone(family) == []


@pytest.mark.parametrize(
    ("chosen", "ranks", "expected"), [(None, 1, 4), (None, 2, 2), (None, 8, 1), (1, 1, 1), (128, 1, 128)]
)
def test_the_default_is_one_worker_a_core_and_more_may_wait(
    chosen: int | None, ranks: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "available_cores", lambda: 4)
    assert workers_for(chosen, local_world_size=ranks) == expected


def test_more_workers_than_can_be_of_use_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "available_cores", lambda: 4)
    with pytest.raises(RecipeError) as caught:
        workers_for(1_000_000)
    message = "scoring.workers: 1000000 processes on a machine with 4 cores; use at most 128, which is 32 a core"
    assert message in caught.value.message

"""kill -9 of a launcher, of a rank and of a zygote, at every kind of moment: nothing of the run is left after seconds.

Every process of a run has a variable of the test's own in its environment, but for those in a sandbox, which have an
empty one: they are found below the others before these are killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.runs import make_workplace, metrics_of, train_arguments
from tests.processes import alive, below, listening, marked, wait_until_gone

LIMIT_S = 120.0
SECONDS = 12.0
"""In which all is gone: a few, on a machine that does much else."""
LAUNCHER = """
import sys
from grpo_core.ranks.launcher import start
from grpo_core.ranks.place import Processes
sys.exit(start(Processes(per_node=2), [sys.argv[1]]))
"""
REWARDS = """
import os, pathlib, time

from grpo_rewards_code.executor.make import make_executor
from grpo_rewards_code.executor.options import ExecutorOptions
from grpo_rewards_code.executor.types import Job, Limits, StdinRun

SLEEPS = Job(program="import time\\ntime.sleep(600)", runs=[StdinRun(stdin="")], limits=Limits(wall_s=500, cpu_s=500))

def reached(where):
    pathlib.Path(f"{where}-{os.getpid()}").touch()

async def in_worker(completions, step):
    if step == 2:
        reached("worker")
        await make_executor(ExecutorOptions()).run(SLEEPS)
    return [1.0 for _ in completions]

async def in_main(completions, step):
    if step == 2:
        reached("main")
        await make_executor(ExecutorOptions()).run(SLEEPS)
    return [float(len(text)) for text in completions]
"""
SLEEPERS = (
    *("--rewards", "./sleepers.py:in_worker,./sleepers.py:in_main"),
    *("--set", "rewards.in_worker.runs_in=worker", "--set", "rewards.in_worker.deadline_s=500"),
    *("--set", "rewards.in_main.deadline_s=500", "--nproc-per-node", "2"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A launcher, started by `begin`, and how its processes are known."""

    process: subprocess.Popen[str]
    mark: str
    folder: Path

    def ranks(self) -> list[int]:
        """Its ranks, the first one first."""
        return [pid for pid in below(self.process.pid) if b"grpo_core.worker" in _read(pid, "cmdline")]

    def zygotes(self) -> list[int]:
        """Of rewards."""
        return [pid for pid in below(self.process.pid) if b"grpo_core.reward.zygote" in _read(pid, "cmdline")]

    def wait(self, happened: Callable[[], object]) -> None:
        until = time.monotonic() + LIMIT_S
        while not happened():
            assert self.process.poll() is None, self.process.communicate()[0]
            assert time.monotonic() < until, "it did not come so far"
            time.sleep(0.1)

    def wait_for_programs(self) -> None:
        """Until workers and ranks wait for programs in sandboxes, and these sleep."""
        self.wait(lambda: len([*self.folder.glob("worker-*")]) >= 2 and len([*self.folder.glob("main-*")]) >= 2)
        self.wait(lambda: len(self.programs()) >= 4)

    def programs(self) -> list[int]:
        """Those that are killed first when memory is short."""
        return [pid for pid in below(self.process.pid) if _read(pid, "oom_score_adj").strip() == b"1000"]

    def assert_gone(self, family: list[int]) -> None:
        """Nothing is left of `family`, nor anything that has the mark."""
        left = wait_until_gone(family, SECONDS)
        assert {pid: _read(pid, "cmdline") for pid in left} == {}
        assert {pid: _read(pid, "cmdline") for pid in marked(self.mark)} == {}


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def begin(*command: str) -> Run:
        name, value = "GRPO_DRILL", uuid.uuid4().hex
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=tmp_path,
            env={**os.environ, name: value, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        runs.append(Run(process=process, mark=f"{name}={value}", folder=tmp_path))
        return runs[-1]

    yield begin
    for run in runs:
        for pid in {run.process.pid, *below(run.process.pid), *marked(run.mark)}:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        run.process.communicate()


def imports_torch(pid: int) -> bool:
    return b"libtorch_cpu" in _read(pid, "maps")


def kill(run: Run, pid: int) -> None:
    """kill -9, and look whether anything is left of those that are there now."""
    family = [pid, *below(pid)]
    assert len(family) > 1
    os.kill(pid, signal.SIGKILL)
    if pid == run.process.pid:
        run.process.wait(LIMIT_S)
    run.assert_gone([each for each in family if each != run.process.pid])


def test_a_launcher_that_is_killed_once_its_ranks_exist_leaves_none(begin: Callable[..., Run]) -> None:
    run = begin("-c", LAUNCHER, "nowhere")
    run.wait(lambda: len(run.ranks()) == 2)
    kill(run, run.process.pid)


@pytest.mark.slow
def test_a_launcher_that_is_killed_while_its_ranks_import_leaves_none(begin: Callable[..., Run]) -> None:
    run = begin("-c", LAUNCHER, "nowhere")
    run.wait(lambda: any(map(imports_torch, run.ranks())))
    kill(run, run.process.pid)


@pytest.mark.slow
def test_a_launcher_that_is_killed_while_its_ranks_meet_leaves_none(begin: Callable[..., Run]) -> None:
    run = begin("-c", LAUNCHER, "nowhere")
    run.wait(lambda: len(run.ranks()) == 2 and imports_torch(run.ranks()[1]))
    first, second = run.ranks()
    os.kill(second, signal.SIGSTOP)  # it will not come
    run.wait(lambda: listening(first))
    kill(run, run.process.pid)


@pytest.fixture
def sleepers(tmp_path: Path, begin: Callable[..., Run]) -> Run:
    """A run of two ranks in its second step: its rewards wait, in workers and beside them, for programs that sleep."""
    make_workplace(tmp_path)
    (tmp_path / "sleepers.py").write_text(REWARDS, encoding="utf-8")
    run = begin("-m", "grpo_core", *train_arguments("run", *SLEEPERS, "--set", "scoring.workers=1"))
    run.wait_for_programs()
    return run


@pytest.mark.slow
def test_a_zygote_that_is_killed_takes_its_workers_along_and_then_the_launcher_all(sleepers: Run) -> None:
    first, second = sleepers.ranks()
    zygote = sleepers.zygotes()[0]
    family = [zygote, *below(zygote)]
    os.kill(zygote, signal.SIGKILL)
    assert wait_until_gone(family, SECONDS) == []
    assert alive(first)
    assert alive(second)
    kill(sleepers, sleepers.process.pid)


@pytest.mark.slow
def test_a_rank_that_is_killed_takes_all_along_and_is_named(sleepers: Run) -> None:
    family = [*below(sleepers.process.pid)]
    heard_at = [address for pid in (sleepers.process.pid, *family) for address in listening(pid)]
    assert heard_at
    assert [address for address in heard_at if not address.startswith("127.")] == []
    os.kill(sleepers.ranks()[1], signal.SIGKILL)
    printed, _ = sleepers.process.communicate(timeout=LIMIT_S)
    assert sleepers.process.returncode == 4, printed
    assert "rank 1 died in" in printed
    assert "(signal 9)" in printed
    sleepers.assert_gone(family)
    assert [row["step"] for row in metrics_of(sleepers.folder / "run")] == [1]

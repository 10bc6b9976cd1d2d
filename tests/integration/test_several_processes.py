"""Runs of several processes by the real command: they are the run of one process, and they stop together."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.integration.runs import completions_of, grpoctl, make_workplace, metrics_of, train_arguments
from tests.integration.test_resume import cut_to_step_two
from tests.ranks import free_port

pytestmark = pytest.mark.timeout(900)  # what every test has: said here, it has this long file begin early
TWO = ("--nproc-per-node", "2")
OWN = ("trainer/micro_batches", "trainer/tokens", "trainer/padding_share")
"""Metrics that are about how an update was computed."""
EVERYTHING = (
    *("--beta", "0.1", "--num-iterations", "2", "--loss", "grpo", "--set", "objective.kl_in=reward"),
    *("--set", "trainer.minibatches=3", "--set", "objective.top_entropy_share=0.5"),
    *("--set", "objective.mask_truncated=true", "--set", "trainer.micro_batch_tokens=60"),
)
DEATH = r"rank {} died in 'rollout' \(signal 9\) while rank {} (waited for it in 'gather'|was in 'rollout')"
"""Which of the two the other one did depends on who was faster."""
REWARDS = """
import os, pathlib, signal, time

RANK = os.environ.get("RANK")

def mark(step):
    pathlib.Path(f"reached-{step}-{RANK}").touch()

def dies(completions, step):
    if step == 2 and RANK == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return [float(len(text)) for text in completions]

def dies_first(completions, step):
    if step == 2 and RANK == "0":
        os.kill(os.getpid(), signal.SIGKILL)
    return [float(len(text)) for text in completions]

def blocks(completions, step):
    if step == 2 and RANK == "1":
        time.sleep(600)
    return [float(len(text)) for text in completions]

def breaks(completions, step):
    if step == 2 and RANK == "1":
        raise SystemExit("a reward that ends its process")
    return [float(len(text)) for text in completions]

def slow(completions, step):
    mark(step)
    time.sleep(0.3)
    return [float(len(text)) for text in completions]
"""


def assert_same_run(one: Path, several: Path) -> None:
    """Completions to the letter, metrics to rounding."""
    kept = ("sample_id", "member", "completion", "tokens", "finish_reason", "scores", "total")
    mine, theirs = completions_of(one), completions_of(several)
    assert [[row[name] for name in kept] for row in theirs] == [[row[name] for name in kept] for row in mine]
    assert [row["advantage"] for row in theirs] == pytest.approx([row["advantage"] for row in mine], abs=1e-4)
    for row, other in zip(metrics_of(one), metrics_of(several), strict=True):
        assert row.keys() == other.keys()
        numbers = [name for name, value in row.items() if value is not None and name not in OWN]
        mine, theirs = {name: row[name] for name in numbers}, {name: other[name] for name in numbers}
        assert theirs == pytest.approx(mine, rel=1e-3, abs=1e-4)


def start(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """The command in a process of its own, in a group of its own as from a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "grpo_core", *arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def await_file(path: Path, process: subprocess.Popen[str], limit_s: float = 120.0) -> None:
    until = time.monotonic() + limit_s
    while not path.exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < until, f"{path} did not come"
        time.sleep(0.05)


def processes_of(run: Path) -> list[int]:
    """The processes whose command names the run's folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes().decode().split("\0")
                where = (entry / "cwd").resolve()
            except OSError:
                continue
            if where == run.parent and run.name in command and "grpo_core.worker" in command:
                found.append(int(entry.name))
    return found


def gone(run: Path, limit_s: float = 20.0) -> bool:
    until = time.monotonic() + limit_s
    while processes_of(run) and time.monotonic() < until:
        time.sleep(0.1)
    return not processes_of(run)


ENGINE = """
import os

from grpo_core.api import RolloutSpec, hookimpl
from grpo_core.rollout.backend import TransformersRollout

FIRST = int(os.environ.get("FAULTY_FROM", 1))


class Faulty(TransformersRollout):
    calls = 0

    def generate(self, requests):
        self.calls += 1
        if self._context.rank == FAULTY and self.calls >= FIRST:
            raise ZeroDivisionError("in an engine")
        return super().generate(requests)


@hookimpl
def grpo_rollout_backends():
    yield RolloutSpec(
        name="faulty",
        summary="Fails on one rank",
        target=f"{__file__}:Faulty",
        options="grpo_core.rollout.options:TransformersRolloutOptions",
        capabilities=frozenset({"weights:stream"}),
    )
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    make_workplace(tmp_path)
    (tmp_path / "fails.py").write_text(REWARDS, encoding="utf-8")
    yield tmp_path
    for process in processes_of(tmp_path / "run"):
        os.kill(process, signal.SIGKILL)


def test_two_processes_make_the_run_of_one(place: Path) -> None:
    arguments = ("--steps", "2", "--eval-rows", "3")
    grpoctl(place, *train_arguments("one", *arguments))
    grpoctl(place, *train_arguments("run", *arguments, *TWO))
    assert_same_run(place / "one", place / "run")
    assert (place / "run/final/model.safetensors").exists()
    assert [path.name for path in (place / "run/checkpoints").iterdir()] == ["step-000002"]


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 3])
def test_every_setting_of_the_loss_over_processes(place: Path, processes: int) -> None:
    grpoctl(place, *train_arguments("one", *EVERYTHING))
    grpoctl(place, *train_arguments("run", *EVERYTHING, *("--nproc-per-node", str(processes)), "--oversubscribe"))
    assert_same_run(place / "one", place / "run")


@pytest.mark.slow
def test_sharded_weights_make_the_run_of_one_process(place: Path) -> None:
    extra = ("--beta", "0.1", "--num-iterations", "2", "--eval-rows", "3")
    grpoctl(place, *train_arguments("one", *extra))
    grpoctl(place, *train_arguments("run", *extra, *TWO, "--set", "trainer.options.sharding=full"))
    assert_same_run(place / "one", place / "run")


@pytest.mark.slow
def test_one_prompt_a_step_is_split_over_processes(place: Path) -> None:
    one_prompt = ("--set", "run.prompts_per_step=1", "--rewards", "./mine.py:vowels")
    grpoctl(place, *train_arguments("one", *one_prompt))
    grpoctl(place, *train_arguments("run", *one_prompt, *TWO))
    assert_same_run(place / "one", place / "run")


@pytest.mark.slow
@pytest.mark.parametrize("sharding", ["none", "full"])
def test_a_resumed_run_of_two_processes_is_bit_identical(place: Path, sharding: str) -> None:
    extra = ("--save-steps", "2", "--eval-rows", "2", "--precision", "bf16", "--num-iterations", "2")
    sharded = ("--set", f"trainer.options.sharding={sharding}")
    grpoctl(place, *train_arguments("whole", *extra, *sharded, *TWO))
    cut_to_step_two(place / "whole", place / "run")
    done = grpoctl(place, "resume", "run")
    assert "going on with 2 processes, as before" in done.stdout
    assert metrics_of(place / "run") == metrics_of(place / "whole")
    assert completions_of(place / "run") == completions_of(place / "whole")
    whole = (place / "whole/final/model.safetensors").read_bytes()
    assert (place / "run/final/model.safetensors").read_bytes() == whole


@pytest.mark.slow
def test_a_run_of_two_processes_goes_on_as_one(place: Path) -> None:
    extra = ("--save-steps", "2")
    grpoctl(place, *train_arguments("one", *extra))
    grpoctl(place, *train_arguments("whole", *extra, *TWO))
    cut_to_step_two(place / "whole", place / "run")
    grpoctl(place, "resume", "run", "--nproc-per-node", "1")
    assert_same_run(place / "one", place / "run")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ("dies", DEATH.format(1, 0)),
        ("dies_first", DEATH.format(0, 1)),
        ("blocks", "rank 0 waited 5 s in 'gather' for rank 1, which has been in 'rollout' since "),
    ],
)
def test_a_rank_that_dies_or_blocks_ends_the_run_with_its_name(place: Path, reward: str, message: str) -> None:
    flags = ("--rewards", f"./fails.py:{reward}", "--set", "run.wait_limit_s=5", "--save-steps", "1")
    process = start(place, *train_arguments("run", *flags, *TWO))
    printed, _ = process.communicate(timeout=600)
    assert process.returncode == 4, printed
    assert printed.count("error: ") == 1
    assert re.search(message, printed)
    assert "Traceback" not in printed
    assert gone(place / "run")
    assert [row["step"] for row in metrics_of(place / "run")] == [1]
    assert (place / "run/checkpoints/step-000001").exists()


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_fault_of_a_plugin_is_printed_once_after_its_traceback(place: Path, rank: int) -> None:
    (place / "engine.py").write_text(ENGINE.replace("== FAULTY", f"== {rank}"), encoding="utf-8")
    process = start(place, *train_arguments("run", "--plugin", "engine.py", "--rollout", "faulty", *TWO))
    printed, _ = process.communicate(timeout=600)
    assert process.returncode == 4, printed
    assert printed.count("error: ") == printed.count("Traceback (most recent call last)") == 1
    fault = "ZeroDivisionError: in an engine"
    assert re.search(rf"Traceback.*in generate\n.*\n{fault}\nerror: rank {rank}: {fault}", printed, re.DOTALL)
    assert gone(place / "run")


@pytest.mark.slow
def test_before_the_fault_of_one_rank_is_told_all_save_the_last_whole_step(place: Path) -> None:
    (place / "engine.py").write_text(ENGINE.replace("== FAULTY", "== 1"), encoding="utf-8")
    more = ("--plugin", "engine.py", "--rollout", "faulty", "--set", "trainer.options.sharding=full", *TWO)
    arguments = train_arguments("run", *more, "--set", "run.probe_prompts=0")
    process = start(place, *arguments, environment={"FAULTY_FROM": "3"})
    printed, _ = process.communicate(timeout=600)
    assert process.returncode == 4, printed
    assert printed.count("error: ") == 1
    assert re.search(r"error: rank 1: ZeroDivisionError: in an engine\n  .*run` goes on from step 2\n", printed)
    assert gone(place / "run")
    assert [path.name for path in (place / "run/checkpoints").iterdir()] == ["step-000002"]


@pytest.mark.slow
def test_an_error_on_another_rank_is_printed_once_with_its_name(place: Path) -> None:
    (place / "rows.jsonl").write_text('{"query": "Say 1", "wanted": 1}\n' * 12, encoding="utf-8")
    flags = ("--rewards", "./fails.py:breaks", "--set", "scoring.max_failed_share=0.2")
    process = start(place, *train_arguments("run", *flags, *TWO))
    printed, _ = process.communicate(timeout=600)
    assert process.returncode == 4, printed
    assert printed.count("error: ") == 1
    assert "reward 'breaks' failed on 4 of 12 completions" in printed


@pytest.mark.slow
def test_ctrl_c_ends_all_after_the_step_with_a_checkpoint(place: Path) -> None:
    process = start(place, *train_arguments("run", "--rewards", "./fails.py:slow", "--steps", "500", *TWO))
    await_file(place / "reached-2-1", process)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=600)
    assert process.returncode == 130, printed
    assert "stopping after this step" in printed
    assert "go on with: grpoctl resume run" in printed
    steps = [int(path.name.removeprefix("step-")) for path in (place / "run/checkpoints").iterdir()]
    assert len(steps) == 1
    assert metrics_of(place / "run")[-1]["step"] == steps[0]
    assert gone(place / "run")


@pytest.mark.slow
def test_a_second_ctrl_c_ends_all_at_once_with_a_checkpoint_of_the_last_whole_step(place: Path) -> None:
    process = start(place, *train_arguments("run", "--rewards", "./fails.py:blocks", *TWO))
    await_file(place / "run/completions/step-000001.jsonl", process)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=600)
    assert process.returncode == 130, printed
    assert gone(place / "run")
    assert [path.name for path in (place / "run/checkpoints").glob("step-*")] == ["step-000001"]


@pytest.mark.slow
def test_torchrun_starts_the_same_run(place: Path) -> None:
    grpoctl(place, *train_arguments("one"))
    grpoctl(place, *train_arguments("run", "--plan-only"))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    subprocess.run([*torchrun, "-m", "grpo_core.worker", "run"], cwd=place, check=True, capture_output=True)
    assert_same_run(place / "one", place / "run")


@pytest.mark.slow
def test_srun_starts_the_same_run(place: Path) -> None:
    grpoctl(place, *train_arguments("one"))
    grpoctl(place, *train_arguments("run", "--plan-only"))
    slurm = {"SLURM_NTASKS": "2", "SLURM_NNODES": "1", "SLURM_STEP_NODELIST": "127.0.0.1"}
    tasks = [
        subprocess.Popen(
            [sys.executable, "-m", "grpo_core.worker", "run"],
            cwd=place,
            env={**os.environ, **slurm, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)}
            | {"MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"},
        )
        for port in [free_port()]
        for rank in range(2)
    ]
    assert [task.wait(180) for task in tasks] == [0, 0]
    assert_same_run(place / "one", place / "run")


@pytest.mark.slow
def test_two_machines_meet_and_the_second_needs_nothing_but_the_meeting_point(place: Path) -> None:
    (place / "elsewhere").mkdir()
    grpoctl(place, *train_arguments("one"))
    meet = ("--nnodes", "2", "--rdzv-endpoint", f"127.0.0.1:{free_port()}")
    second = start(place / "elsewhere", "train", *meet, "--node-rank", "1")
    first = start(place, *train_arguments("run", *meet, "--node-rank", "0"))
    for process in (first, second):
        printed, _ = process.communicate(timeout=600)
        assert process.returncode == 0, printed
    assert_same_run(place / "one", place / "run")


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_more_processes_than_fit_are_refused_before_any_is_started(place: Path, dry: tuple[str, ...]) -> None:
    done = grpoctl(place, *train_arguments("run", "--nproc-per-node", "190", *dry), code=2)
    assert re.search(r"--nproc-per-node is 190, and this machine has \d+ cores? for its processes", done.stderr)
    assert re.search(r"start at most \d+ here, or insist: --oversubscribe", done.stderr)
    assert "Traceback" not in done.stderr
    assert not (place / "run").exists()


def test_who_insists_may_plan_as_many_as_there_is_no_room_for(place: Path) -> None:
    many = ("--nproc-per-node", "190", "--oversubscribe", "--dry-run")
    assert "in 190 processes" in grpoctl(place, *train_arguments("run", *many)).stdout


def test_a_plan_for_another_machine_may_have_more_processes_than_this_one_has_room_for(place: Path) -> None:
    grpoctl(place, *train_arguments("run", "--nproc-per-node", "190", "--plan-only"))
    done = grpoctl(place, "resume", "run", code=2)
    assert "going on with 190 processes, as before" in done.stdout
    assert "--nproc-per-node is 190" in done.stderr
    assert "or insist: --oversubscribe" in done.stderr
    assert not (place / "run/metrics.jsonl").exists()


def test_a_machine_that_is_told_nothing_but_where_to_meet_refuses_too_many_processes_as_well(place: Path) -> None:
    meet = ("--nnodes", "2", "--node-rank", "1", "--rdzv-endpoint", "127.0.0.1:9")
    for command in (("train",), ("resume", "run")):
        done = grpoctl(place, *command, *meet, "--nproc-per-node", "190", code=2)
        assert "--nproc-per-node is 190" in done.stderr


def test_more_workers_of_rewards_than_can_be_of_use_are_refused(place: Path) -> None:
    for workers in ("scoring.workers=1000000", f"scoring.workers={10**30}"):
        done = grpoctl(place, *train_arguments("run", "--set", workers, "--dry-run"), code=2)
        assert re.search(r"scoring.workers: 10+ processes on a machine with \d+ cores?; use at most \d+", done.stderr)
        assert "(--set)" in done.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--nnodes", "2"), "--nnodes 2 needs the place where the machines meet, and --rdzv-endpoint is None"),
        (("--nnodes", "2", "--rdzv-endpoint", "host"), "--rdzv-endpoint is 'host'"),
        (("--nnodes", "2", "--node-rank", "2"), "--node-rank is 2 and --nnodes 2: machines are numbered from 0 to 1"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(place: Path, flags: tuple[str, ...], message: str) -> None:
    done = grpoctl(place, *train_arguments("run", *flags), code=2)
    assert message in done.stderr

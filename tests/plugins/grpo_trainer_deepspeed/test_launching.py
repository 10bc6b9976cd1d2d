"""Runs with DeepSpeed, started in every documented way; "machines" are addresses of this one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.runs import grpoctl, make_workplace, metrics_of, train_arguments
from tests.integration.test_several_processes import (
    DEATH,
    REWARDS,
    assert_same_run,
    await_file,
    gone,
    processes_of,
    start,
)
from tests.ranks import free_port

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.timeout(1800)]

DEEPSPEED = ("--trainer", "deepspeed", "--set", "trainer.options.device=cpu")
TWO = ("--nproc-per-node", "2")
SHORT = ("--steps", "2")
WORKER = ("-m", "grpo_core.worker", "run")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu", "CUDA_VISIBLE_DEVICES": ""}
LIMIT_S = 200


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    make_workplace(tmp_path)
    (tmp_path / "fails.py").write_text(REWARDS, encoding="utf-8")
    yield tmp_path
    for process in processes_of(tmp_path / "run"):
        os.kill(process, signal.SIGKILL)


def run_all(commands: list[list[str]], place: Path, environments: list[dict[str, str]] | None = None) -> None:
    """Run commands beside each other; all of them must end well."""
    started = [
        subprocess.Popen(
            command, cwd=place, env=ENVIRONMENT | extra, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for command, extra in zip(commands, environments or [{}] * len(commands), strict=True)
    ]
    try:
        printed = [process.communicate(timeout=LIMIT_S)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0] * len(started), "\n".join(printed)


@pytest.mark.parametrize("starter", ["torchrun", "srun", "deepspeed", "deepspeed with a hostfile"])
def test_other_starters_start_the_same_run(place: Path, starter: str) -> None:
    grpoctl(place, *train_arguments("one", *SHORT))
    grpoctl(place, *train_arguments("run", *SHORT, *DEEPSPEED, "--plan-only"))
    python, port = sys.executable, str(free_port())
    if starter == "torchrun":
        run_all([[python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", *WORKER]], place)
    elif starter == "srun":
        slurm = {"SLURM_NTASKS": "2", "SLURM_NNODES": "1", "SLURM_STEP_NODELIST": "127.0.0.1", "MASTER_PORT": port}
        tasks = [{**slurm, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)} for rank in range(2)]
        run_all([[python, *WORKER]] * 2, place, tasks)
    else:
        launcher = [python, "-m", "deepspeed.launcher.runner", "--master_port", port]
        worker = ["--module", "grpo_core.worker", "run"]
        if starter == "deepspeed":
            run_all([[*launcher, "--num_accelerators", "2", *worker]], place)
        else:
            (place / "hosts").write_text("127.0.0.1 slots=1\n127.0.0.2 slots=1\n")
            hosts = ["--hostfile", "hosts", "--no_ssh", "--master_addr", "127.0.0.1"]
            run_all([[*launcher, *hosts, "--node_rank", str(rank), *worker] for rank in range(2)], place)
    assert_same_run(place / "one", place / "run")


def test_two_machines_meet(place: Path) -> None:
    grpoctl(place, *train_arguments("one", *SHORT))
    meet = ["--nnodes", "2", "--rdzv-endpoint", f"127.0.0.1:{free_port()}"]
    first = train_arguments("run", *SHORT, *DEEPSPEED, *meet, "--node-rank", "0")
    grpo = [sys.executable, "-m", "grpo_core"]
    run_all([[*grpo, *first], [*grpo, "train", *meet, "--node-rank", "1"]], place)
    assert_same_run(place / "one", place / "run")


def test_a_rank_that_dies_ends_the_run_with_its_name(place: Path) -> None:
    flags = ("--rewards", "./fails.py:dies", "--save-steps", "1")
    process = start(place, *train_arguments("run", *flags, *DEEPSPEED, *TWO))
    printed, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 4, printed
    assert re.search(DEATH.format(1, 0), printed), printed
    assert printed.count("error: ") == 1
    assert gone(place / "run")
    assert (place / "run/checkpoints/step-000001").exists()


def test_a_rank_that_dies_in_deepspeeds_own_collectives_ends_the_run_within_seconds(place: Path) -> None:
    flags = ("--steps", "500", "--max-completion-tokens", "2", "--rewards", "./fails.py:slow")
    process = start(place, *train_arguments("run", *flags, *DEEPSPEED, *TWO))
    await_file(place / "reached-2-1", process)
    os.kill(processes_of(place / "run")[1], signal.SIGSTOP)  # the other one waits for it, wherever it is
    time.sleep(2.0)
    os.kill(processes_of(place / "run")[1], signal.SIGKILL)
    killed = time.monotonic()
    printed, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 4, printed
    assert time.monotonic() - killed < 60.0
    assert "died in " in printed
    assert gone(place / "run")


def test_ctrl_c_leaves_a_checkpoint_that_a_resume_goes_on_from(place: Path) -> None:
    process = start(place, *train_arguments("run", "--rewards", "./fails.py:slow", "--steps", "6", *DEEPSPEED, *TWO))
    await_file(place / "reached-2-1", process)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, printed
    assert gone(place / "run")
    grpoctl(place, "resume", "run", *TWO)
    assert metrics_of(place / "run")[-1]["step"] == 6

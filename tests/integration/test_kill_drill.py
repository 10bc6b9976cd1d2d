"""kill -9 at twenty random instants; what is resumed ends as the run that nobody killed, bit by bit."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.runs import completions_of, make_workplace, metrics_of, train_arguments

KILLS = 20
STEPS = 60
LIMIT_S = 120.0

SLOW_REWARD = '''
import time

def vowels(completions, wanted):
    """A share of vowels that takes a while, so that kills also come while it is computed."""
    time.sleep(0.05)
    return [sum(c in "aeiou" for c in text) / max(len(text), 1) + w for text, w in zip(completions, wanted)]
'''


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """The real command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "grpo_core", *arguments],
        cwd=folder,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def complete(folder: Path, *arguments: str) -> None:
    """The same, to its end."""
    assert start(folder, *arguments).wait(5 * LIMIT_S) == 0


def wait_until_it_trains(process: subprocess.Popen[bytes], run: Path, since: float) -> None:
    """Until this process wrote something, which it does after its first step at the latest."""
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until and process.poll() is None:
        if any(_written_s(path) > since for path in (run / "completions").glob("*.jsonl")):
            return
        time.sleep(0.01)


def _written_s(path: Path) -> float:
    """When a file was written; 0 for one that a resumed run has cut off meanwhile."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def wait_for_a_checkpoint_being_written(process: subprocess.Popen[bytes], run: Path) -> None:
    """Until the folder that is written aside is seen."""
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until and process.poll() is None:
        if any((run / "checkpoints").glob(".partial-*")):
            return


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_twenty_kills_at_random_instants_change_nothing(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    (tmp_path / "mine.py").write_text(SLOW_REWARD, encoding="utf-8")
    more = ("--steps", str(STEPS), "--save-steps", "2", "--save-total-limit", "3", "--num-iterations", "2")
    complete(tmp_path, *train_arguments("whole", *more))
    instants = random.Random(7)
    run = tmp_path / "killed"
    killed = 0
    arguments = train_arguments("killed", *more)
    for place in range(KILLS):
        process = start(tmp_path, *arguments)
        wait_until_it_trains(process, run, time.time())
        if place % 4 == 3:
            wait_for_a_checkpoint_being_written(process, run)
        else:
            time.sleep(instants.uniform(0.0, 0.4))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.wait()
        arguments = ["resume", "killed"]
    assert killed == KILLS, "the run ended before the drill did: give it more steps"
    complete(tmp_path, "resume", "killed")
    assert metrics_of(run) == metrics_of(tmp_path / "whole")
    assert completions_of(run) == completions_of(tmp_path / "whole")
    weights = "final/model.safetensors"
    assert (run / weights).read_bytes() == (tmp_path / "whole" / weights).read_bytes()

"""Two real vLLM servers, one of which is killed: the other takes its prompts, and the run goes on."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.plugins.grpo_rollout_vllm.real_server import RealServer
from tests.plugins.grpo_rollout_vllm.workplace import check_gaps, make_place, run_arguments

pytestmark = [
    pytest.mark.engines,
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("default"),  # of the engines' own making
]
STEPS = 12


def test_drill_one_of_two_servers_is_killed_while_it_generates(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    with (
        RealServer(place / "model", place / "first.log") as first,
        RealServer(place / "model", place / "second.log") as second,
    ):
        first.wait()
        second.wait()
        options = (
            f"rollout.options.urls=[{first.url},{second.url}]",
            "rollout.max_completion_tokens=64",
            "rollout.options.prompts_in_flight=2",
        )
        more = [part for option in options for part in ("--set", option)]
        command = [sys.executable, "-m", "grpo_core", *run_arguments("run", *more, steps=STEPS)]
        run = subprocess.Popen(command, cwd=place)
        try:
            until = time.monotonic() + 300
            while not first.running() and time.monotonic() < until:
                time.sleep(0.002)
            first.kill()
            assert run.wait(600) == 0
        finally:
            run.kill()
        check_gaps(place / "run", steps=STEPS)
        assert second.label().startswith(f"grpo-{STEPS - 1}-")

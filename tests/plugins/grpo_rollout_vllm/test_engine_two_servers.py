"""Two real vLLM servers, one of which is killed: the other takes its prompts, and the run goes on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugins.grpo_rollout_vllm.drill import Moment, kill_in
from tests.plugins.grpo_rollout_vllm.real_server import RealServer
from tests.plugins.grpo_rollout_vllm.workplace import check_gaps, make_place, run_arguments

pytestmark = [
    pytest.mark.engines,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("default"),  # of the engines' own making
]
STEPS = 12


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_place(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def servers(place: Path) -> Iterator[tuple[RealServer, RealServer]]:
    with (
        RealServer(place / "model", place / "first.log") as first,
        RealServer(place / "model", place / "second.log") as second,
    ):
        yield first.wait(), second.wait()


@pytest.mark.parametrize("moment", ["generation", "update", "between"])
def test_drill_one_of_two_servers_is_killed(
    moment: Moment, servers: tuple[RealServer, RealServer], place: Path
) -> None:
    first, second = servers
    options = (
        f"rollout.options.urls=[{first.url},{second.url}]",
        "rollout.max_completion_tokens=64",
        "rollout.options.prompts_in_flight=2",
    )
    more = [part for option in options for part in ("--set", option)]
    command = [sys.executable, "-m", "grpo_core", *run_arguments(moment, *more, steps=STEPS)]
    run = subprocess.Popen(command, cwd=place)
    try:
        kill_in(first, moment)
        assert run.wait(600) == 0
    finally:
        run.kill()
        first.start()
        first.wait()
    check_gaps(place / moment, steps=STEPS)
    assert second.label().startswith(f"grpo-{STEPS - 1}-")

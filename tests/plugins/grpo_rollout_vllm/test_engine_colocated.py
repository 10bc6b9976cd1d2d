"""Runs with vLLM in the processes that train, on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.runs import completions_of, metrics_of
from tests.plugins.grpo_rollout_vllm.real_server import ENVIRONMENT
from tests.plugins.grpo_rollout_vllm.workplace import check_gaps, make_place, run_arguments

pytestmark = [
    pytest.mark.engines,
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("default"),  # of the engines' own making
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_place(tmp_path_factory.mktemp("colocated"))


def train(place: Path, output: str, *more: str) -> Path:
    """In a process of its own: vLLM reads its settings when it is imported, and ends with its process."""
    options = ("rollout.options.mode=colocated", "rollout.options.context_tokens=128")
    command = run_arguments(output, *(part for option in options for part in ("--set", option)), *more)
    done = subprocess.run(
        [sys.executable, "-m", "grpo_core", *command],
        cwd=place,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    check_gaps(place / output)
    return place / output


def texts(run: Path) -> list[object]:
    return [row["completion"] for row in completions_of(run)]


def test_one_rank_two_ranks_and_an_engine_over_two_ranks_draw_the_same(place: Path) -> None:
    alone = train(place, "alone", "--eval-rows", "2", "--eval-steps", "2")
    apart = train(place, "apart", "--nproc-per-node", "2")
    across = train(place, "across", "--nproc-per-node", "2", "--set", "rollout.options.tensor_parallel=2")
    assert len(texts(alone)) == 4 * 12
    assert texts(apart) == texts(across)
    assert metrics_of(alone)[-1]["eval/prompts"] == 2.0


def test_sharded_weights_of_two_ranks_are_streamed_into_two_engines(place: Path) -> None:
    train(place, "sharded", "--nproc-per-node", "2", "--trainer", "deepspeed", "--set", "trainer.options.stage=3")

"""A LoRA adapter alone, on a real vLLM server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.runs import completions_of, grpoctl
from tests.plugins.grpo_rollout_vllm.real_server import RealServer
from tests.plugins.grpo_rollout_vllm.workplace import check_gaps, make_place, run_arguments

pytestmark = [
    pytest.mark.engines,
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("default"),  # of the engines' own making
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_place(tmp_path_factory.mktemp("lora"))


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[RealServer]:
    with RealServer(place / "model", place / "server.log", "--enable-lora", "--max-lora-rank", "8") as server:
        yield server.wait()


def arguments(server: RealServer, output: str, *more: str) -> list[str]:
    options = (f"rollout.options.urls=[{server.url}]", "rollout.options.lora=adapter", "trainer.lora.rank=8")
    return run_arguments(output, *(part for option in options for part in ("--set", option)), *more)


def test_adapters_alone_agree_with_the_trainer_at_every_step_on_one_rank_and_on_two(
    server: RealServer, place: Path
) -> None:
    grpoctl(place, *arguments(server, "one"))
    check_gaps(place / "one")
    assert server.label().startswith("grpo-3-")
    assert server.label().endswith("-lora")
    command = arguments(server, "two", "--nproc-per-node", "2")
    subprocess.run([sys.executable, "-m", "grpo_core", *command], cwd=place, check=True, timeout=300)
    check_gaps(place / "two")
    first, second = (completions_of(place / output) for output in ("one", "two"))
    assert [row["completion"] for row in first] == [row["completion"] for row in second]

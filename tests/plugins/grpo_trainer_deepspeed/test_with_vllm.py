"""Two ZeRO-3 processes and a real vLLM server: weights stream out of the shards, and the server computes with them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugins.grpo_rollout_vllm.real_server import RealServer
from tests.plugins.grpo_rollout_vllm.workplace import check_gaps, make_place, run_arguments

pytestmark = [
    pytest.mark.engines,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("default"),  # of the engines' own making
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_place(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[RealServer]:
    with RealServer(place / "model", place / "server.log", "--enable-lora", "--max-lora-rank", "8") as server:
        yield server.wait()


@pytest.mark.parametrize(
    ("output", "more", "label"),
    [
        # The first one: a server that was given whole weights has no model for an adapter any more.
        ("adapter", ("trainer.lora.rank=8", "rollout.options.lora=adapter"), "-lora"),
        ("merged", ("trainer.lora.rank=8",), ""),
        ("whole", ("objective.beta=0.1",), ""),
    ],
)
def test_the_server_computes_with_the_weights_of_every_update(
    output: str, more: tuple[str, ...], label: str, server: RealServer, place: Path
) -> None:
    settings = (f"rollout.options.urls=[{server.url}]", "trainer.options.stage=3", "trainer.options.device=cpu", *more)
    flags = [part for setting in settings for part in ("--set", setting)]
    command = run_arguments(output, "--trainer", "deepspeed", "--nproc-per-node", "2", *flags)
    subprocess.run([sys.executable, "-m", "grpo_core", *command], cwd=place, check=True, timeout=900)
    check_gaps(place / output)
    assert server.label().startswith("grpo-3-")
    assert server.label().endswith(label)

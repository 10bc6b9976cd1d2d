"""A real vLLM server of two data-parallel engines: both get the weights, by the folder and over the network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.runs import grpoctl
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
    return make_place(tmp_path_factory.mktemp("parallel"))


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[RealServer]:
    with RealServer(
        place / "model", place / "server.log", "--data-parallel-size", "2", VLLM_CPU_OMP_THREADS_BIND="nobind"
    ) as server:
        yield server.wait()


@pytest.mark.parametrize("transfer", ["folder", "network"])
def test_both_engines_agree_with_the_trainer_at_every_step(transfer: str, server: RealServer, place: Path) -> None:
    options = (f"rollout.options.urls=[{server.url}]", f"rollout.options.transfer={transfer}")
    grpoctl(place, *run_arguments(transfer, *(part for option in options for part in ("--set", option))))
    check_gaps(place / transfer)
    assert server.label().startswith("grpo-3-")

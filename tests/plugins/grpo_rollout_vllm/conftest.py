from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugins.grpo_rollout_vllm.stand_in import StandIn
from tests.tiny_models import make_model_folder


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model that a stand-in says it has."""
    return make_model_folder(tmp_path_factory.mktemp("served") / "model")


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn() as server:
        yield server


@pytest.fixture
def other() -> Iterator[StandIn]:
    """A second one."""
    with StandIn() as server:
        yield server


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

"""A LoRA adapter alone on its way to servers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from grpo_core.api import RolloutError
from grpo_core.loop.checked import generate
from grpo_rollout_vllm.rollout import ServerRollout
from tests.plugins.grpo_rollout_vllm.making import request, rollout, weights
from tests.plugins.grpo_rollout_vllm.stand_in import StandIn


@contextmanager
def adapters(model: Path, run_dir: Path, server: StandIn, **more: Any) -> Iterator[ServerRollout]:
    with rollout(model, run_dir, server.url, trains_adapter=True, lora="adapter", **more) as backend:
        yield backend


def writer(value: float) -> Callable[[Path], None]:
    def write(directory: Path) -> None:
        save_file({"lora_A": torch.full((2, 2), value)}, directory / "adapter_model.safetensors")

    return write


def test_a_server_gets_the_adapter_and_prompts_name_it(server: StandIn, model: Path, tmp_path: Path) -> None:
    with adapters(model, tmp_path, server) as backend:
        assert backend.takes_adapter
        for version in (0, 1):
            backend.load_adapter(writer(float(version)), version)
        (group,) = generate(backend, [request()])
        assert [folder.name for folder in (tmp_path / "weights").glob("*/*")] == ["v1"]
    assert server.adapter["lora_A"].tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert server.prompts[0]["model"] == "policy"
    assert server.label.startswith("grpo-1-")
    assert group.completions[0].policy_version == 1
    assert "grpo_load" not in server.asked


def test_a_server_that_comes_back_gets_the_adapter_again(server: StandIn, model: Path, tmp_path: Path) -> None:
    with adapters(model, tmp_path, server) as backend:
        backend.load_adapter(writer(1.0), 1)
        server.die()
        server.adapter = {}
        server.start()
        assert len(list(generate(backend, [request()]))) == 1
    assert server.adapter["lora_A"].tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_an_adapter_that_an_earlier_process_brought_is_not_taken_for_this_ones(
    server: StandIn, model: Path, tmp_path: Path
) -> None:
    for value in (1.0, 2.0):
        with adapters(model, tmp_path, server) as backend:
            backend.load_adapter(writer(value), 4)
    assert server.adapter["lora_A"].tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_other_ranks_take_part_in_writing_and_wait_for_rank_0(server: StandIn, model: Path, tmp_path: Path) -> None:
    called: list[Path] = []
    with (
        adapters(model, tmp_path, server) as first,
        adapters(model, tmp_path, server, rank=1) as second,
    ):
        waiting = threading.Thread(target=second.load_adapter, args=(called.append, 3))
        waiting.start()
        time.sleep(0.1)
        assert waiting.is_alive()
        first.load_adapter(writer(1.0), 3)
        waiting.join(30)
        (group,) = generate(second, [request()])
    assert len(called) == 1
    assert group.completions[0].policy_version == 3


def test_a_server_without_lora_is_told_how_to_be_started(server: StandIn, model: Path, tmp_path: Path) -> None:
    server.takes_adapters = False
    with (
        adapters(model, tmp_path, server) as backend,
        pytest.raises(RolloutError, match="does not take the adapter: Not Found") as raised,
    ):
        backend.load_adapter(writer(1.0), 0)
    assert "--enable-lora and a --max-lora-rank of at least trainer.lora.rank" in str(raised.value.hint)


def test_a_server_with_whole_weights_of_another_run_has_no_model_for_an_adapter(
    server: StandIn, model: Path, tmp_path: Path
) -> None:
    with rollout(model, tmp_path, server.url) as backend:
        assert not backend.takes_adapter
        backend.load_weights(weights(), 2)
    with (
        adapters(model, tmp_path, server) as backend,
        pytest.raises(RolloutError, match="no model for an adapter any more\n  start it again"),
    ):
        backend.load_adapter(writer(1.0), 0)


def test_an_adapter_that_the_server_reads_otherwise_is_refused(server: StandIn, model: Path, tmp_path: Path) -> None:
    def spoil(_: StandIn) -> None:
        (folder,) = (tmp_path / "weights").glob("*/v0")
        writer(9.0)(folder)

    server.before["grpo_check_adapter"] = spoil
    with (
        adapters(model, tmp_path, server) as backend,
        pytest.raises(RolloutError, match=r"reads another adapter in .*v0 than was written"),
    ):
        backend.load_adapter(writer(1.0), 0)

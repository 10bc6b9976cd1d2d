from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.api import PluginError, RolloutError
from grpo_rollout_vllm.backend import make
from grpo_rollout_vllm.options import VllmRolloutOptions
from grpo_rollout_vllm.replica import Replica
from tests.plugins.grpo_rollout_vllm.making import context, request


def test_an_engine_of_one_rank_is_asked_what_that_rank_asks(tmp_path: Path) -> None:
    asked = [request(1), request(2)]
    assert Replica(context(tmp_path, tmp_path), 1).together(asked) == [(asked[0], True), (asked[1], True)]


def test_ranks_that_cannot_be_divided_among_engines_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(RolloutError, match="tensor_parallel is 2, and 3 ranks cannot be divided by it"):
        Replica(context(tmp_path, tmp_path, world_size=3), 2)


def test_colocated_without_vllm_says_what_to_install(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "vllm", None)
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "1")
    with pytest.raises(PluginError, match="mode is colocated, and vLLM cannot be imported here"):
        make(VllmRolloutOptions(mode="colocated"), context(model, tmp_path))

"""The torch trainer on two real ranks against one: the same losses, gradients and metrics, however an update is shared
out, with copies of the weights and with shards of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from grpo_core.trainer.spread import Spread
from tests.core.trainer.batches import assert_same_gradients
from tests.core.trainer.rank_scenes import IMAGES, cases, make_models, moments, run_case
from tests.ranks import run_ranks

SCENES = "tests.core.trainer.rank_scenes"
ALONE = {"rank": 0, "world_size": 1}
OWN = (
    "trainer/micro_batches",
    "trainer/tokens",  # a prompt is forwarded on every rank that has a part of its group
    "trainer/padding_share",
    "trainer/visual_tokens",
    "trainer/tower_calls",
)
"""Metrics that are about how an update was computed."""
NAMES = [case.name for case in cases("none")]

WEIGHTS = "weights.safetensors"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def alone(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process makes of every case."""
    scratch = tmp_path_factory.mktemp("alone")
    for case in cases("none"):
        metrics = run_case(case, folder, scratch, ALONE)
        (scratch / f"{case.file}.json").write_text(json.dumps(metrics))
    return scratch


@pytest.fixture(scope="module")
def copies(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    scratch = tmp_path_factory.mktemp("copies")
    run_ranks(2, f"{SCENES}:run_cases", folder, scratch, "none")
    return scratch


@pytest.fixture(scope="module")
def shards(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    scratch = tmp_path_factory.mktemp("shards")
    run_ranks(2, f"{SCENES}:run_cases", folder, scratch, "full")
    return scratch


def check(name: str, alone: Path, together: Path) -> None:
    file = next(case.file for case in cases("none") if case.name == name)
    for update in ("first", "second"):
        expected, actual = moments(alone / f"{file}-{update}"), moments(together / f"{file}-{update}")
        assert_same_gradients(actual, expected)
        torch.testing.assert_close(
            load_file(together / f"{file}-{update}" / WEIGHTS),
            load_file(alone / f"{file}-{update}" / WEIGHTS),
            rtol=1e-3,
            atol=1e-4,  # AdamW divides by the gradient's size: noise of a gradient of 0 moves its weight too
        )
    numbers = json.loads((alone / f"{file}.json").read_text())
    for rank in range(2):
        said = json.loads((together / f"{file}-{rank}.json").read_text())
        own = {f"{update} {metric}" for update in (1, 2) for metric in OWN}
        assert said.keys() == numbers.keys()
        assert {n: v for n, v in said.items() if n not in own} == pytest.approx(
            {n: v for n, v in numbers.items() if n not in own}, rel=1e-4, abs=1e-5
        )


@pytest.mark.parametrize("name", NAMES)
def test_two_ranks_with_copies_make_the_update_of_one(name: str, alone: Path, copies: Path) -> None:
    check(name, alone, copies)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_two_ranks_with_shards_make_the_update_of_one(name: str, alone: Path, shards: Path) -> None:
    check(name, alone, shards)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["model", IMAGES])
@pytest.mark.parametrize("sharding", ["none", "full"])
def test_a_trainer_restored_on_two_ranks_goes_on_bit_by_bit(
    folder: Path, tmp_path: Path, sharding: str, model: str
) -> None:
    run_ranks(2, f"{SCENES}:restores", folder.parent / model, tmp_path, sharding)
    out = tmp_path / f"{sharding}-2"
    for file in (WEIGHTS, "optimizer.safetensors"):
        one, other = load_file(out / "through" / file), load_file(out / "resumed" / file)
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)
    streamed = load_file(out / "streamed.safetensors")
    exported = load_file(out / "exported" / "model.safetensors")
    assert all(torch.equal(exported[name], streamed[name].to(torch.bfloat16)) for name in exported)
    saved = load_file(out / "resumed" / WEIGHTS)
    assert saved.keys() == streamed.keys()


def test_one_rank_tells_nobody_anything() -> None:
    spread = Spread(world_size=1, device=torch.device("cpu"))
    gradient = torch.ones(3)
    spread.sum_gradients([gradient])
    assert gradient.tolist() == [1.0, 1.0, 1.0]
    assert spread.total([1.5, 2.0]) == [1.5, 2.0]
    assert spread.agrees(False) is False
    assert spread.even([]) == []

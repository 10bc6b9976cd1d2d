"""DeepSpeed on two real ranks against the torch trainer alone: the same losses, gradients, metrics and weights, with
whatever spread over the ranks and however an update is shared out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.core.trainer.batches import assert_same_gradients
from tests.core.trainer.rank_scenes import Case, cases, make_models, run_case
from tests.core.trainer.rank_scenes import moments as moments_of_torch
from tests.plugins.grpo_trainer_deepspeed.running import run_scene

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1800)]

OWN = ("trainer/micro_batches", "trainer/tokens", "trainer/padding_share")
"""Metrics that are about how an update was computed."""
CASES = {case.name: case for case in cases("none")}
RUNS = [
    *[(stage, name) for stage in (0, 1, 2) for name in ("with KL and entropy, one has none", "small micro-batches")],
    *[(stage, "LoRA") for stage in (1, 2)],
    *[(stage, "routers") for stage in (0, 2, 3)],
    *[(3, name) for name in ("grpo, groups", "dapo, a group is split", "with KL and entropy, one has none")],
    *[(3, name) for name in ("gspo, groups", "small micro-batches", "LoRA")],
]
"""Stages and cases. Losses are core's, so not every one with every stage."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def alone(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the torch trainer makes of every case in one process."""
    scratch = tmp_path_factory.mktemp("alone")
    for case in [CASES[name] for name in {name for _, name in RUNS}]:
        metrics = run_case(case, folder, scratch, {"rank": 0, "world_size": 1})
        (scratch / f"{case.file}.json").write_text(json.dumps(metrics))
    return scratch


@pytest.fixture(scope="module")
def together(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two ranks with DeepSpeed make of them."""
    scratch = tmp_path_factory.mktemp("together")
    chosen: dict[str, dict[str, object]] = {}
    for stage, name in RUNS:
        chosen.setdefault(f"stage {stage}", {})[name] = {"stage": stage, "chunk_tokens": 7}
    run_scene("run_cases", folder, scratch, json.dumps(chosen))
    return scratch


@pytest.mark.parametrize(("stage", "name"), RUNS)
def test_two_ranks_with_deepspeed_make_the_update_of_torch(stage: int, name: str, alone: Path, together: Path) -> None:
    case, out = CASES[name], together / f"stage {stage}"
    for number, update in ((1, "first"), (2, "second")):
        expected = moments_of_torch(alone / f"{case.file}-{update}")
        actual = load_file(out / f"{case.file}-{number}-moments.safetensors")
        assert_same_gradients(actual, expected)
        if "lora" not in case.trainer:  # whose checkpoint holds the adapter alone
            torch.testing.assert_close(
                load_file(out / f"{case.file}-{number}-weights.safetensors"),
                load_file(alone / f"{case.file}-{update}" / "weights.safetensors"),
                rtol=1e-3,
                atol=1e-4,  # AdamW divides by the gradient's size: noise of a gradient of 0 moves its weight too
            )
    check_metrics(case, alone, out)


def check_metrics(case: Case, alone: Path, out: Path) -> None:
    numbers = json.loads((alone / f"{case.file}.json").read_text())
    own = {f"{number} {metric}" for number in (1, 2) for metric in OWN}
    for rank in range(2):
        said = json.loads((out / f"{case.file}-{rank}.json").read_text())
        assert said.keys() == numbers.keys()
        assert {n: v for n, v in said.items() if n not in own} == pytest.approx(
            {n: v for n, v in numbers.items() if n not in own}, rel=1e-4, abs=1e-5
        )

"""Precisions, clipping, offload and collapse on two real ranks, against the torch trainer alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.core.trainer.batches import make_batch, make_trainer
from tests.plugins.grpo_trainer_deepspeed.rank_scenes import pass_by_a_weight
from tests.plugins.grpo_trainer_deepspeed.running import run_scene
from tests.tiny_models import make_model_folder

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.timeout(1800)]

STAGES = (0, 1, 2, 3)
CLIPPED: dict[str, Any] = {"adam_beta1": 0.0, "max_grad_norm": 0.1, "micro_batch_tokens": 60}
EXACT: dict[str, dict[str, Any]] = {
    **{f"stage {stage} clipped": {"options": {"stage": stage}, **CLIPPED} for stage in STAGES},
    "stage 2 offload": {"options": {"stage": 2, "offload_optimizer": True}, **CLIPPED},
    "stage 3 offload": {"options": {"stage": 3, "offload_optimizer": True, "offload_parameters": True}, **CLIPPED},
    "json": {"options": {"config": {"zero_optimization": {"stage": 1, "reduce_bucket_size": 1000}}}, **CLIPPED},
}
BF16 = {f"stage {stage} bf16": {"options": {"stage": stage}, **CLIPPED, "precision": "bf16"} for stage in STAGES}
FP16 = {f"stage {stage} fp16": {"options": {"stage": stage, "fp16": True}, **CLIPPED} for stage in STAGES}
RAISED: dict[str, dict[str, Any]] = {
    f"stage {stage} raised fp16": {
        "options": {"stage": stage, "fp16": True, "config": {"fp16": {"loss_scale_window": 1}}},
        **CLIPPED,
        "max_grad_norm": None,
    }
    for stage in STAGES
}
"""The loss scale doubles in the second update; clipped gradients would not show what they are divided by."""
UNREACHED: dict[str, dict[str, Any]] = {
    "stage 0 unreached bf16": {"options": {"stage": 0}, **CLIPPED, "precision": "bf16", "unreached": True},
    "stage 0 unreached fp16": {"options": {"stage": 0, "fp16": True}, **CLIPPED, "unreached": True},
    "stage 0 unreached": {"options": {"stage": 0}, **CLIPPED, "unreached": True},
}
"""A weight that no micro-batch reaches."""
RUNS = EXACT | BF16 | FP16 | RAISED | UNREACHED
LARGEST_ERROR = {"bf16": 0.03, "fp16": 0.02}
"""Of a gradient, as a share of its norm: two ranks round other partial sums than one, and torch has fp32 for fp16."""
LARGEST_ERROR_FP32 = 1e-5
"""The same in fp32."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model_folder(tmp_path_factory.mktemp("qwen3") / "model")


@pytest.fixture(scope="module")
def updated(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    scratch = tmp_path_factory.mktemp("updated")
    run_scene("updates", folder, scratch, json.dumps(RUNS))
    return scratch


@pytest.mark.parametrize("name", RUNS)
def test_two_updates_are_those_of_torch(name: str, folder: Path, updated: Path, tmp_path: Path) -> None:
    settings = {key: value for key, value in RUNS[name].items() if key not in ("options", "unreached")}
    alone, batch = make_trainer(folder, **settings), make_batch(groups=3, members=5, seed=3)
    if "unreached" in RUNS[name]:
        pass_by_a_weight(alone._policy.model)
    alone.update(batch)
    metrics = alone.update(batch).metrics
    alone.save(tmp_path)
    saved = load_file(tmp_path / "optimizer.safetensors")
    actual = load_file(updated / name / "moments.safetensors")
    limit = LARGEST_ERROR.get(name.rpartition(" ")[2], LARGEST_ERROR_FP32)
    assert actual.keys() == {key.removeprefix("exp_avg/") for key in saved if key.startswith("exp_avg/")}
    mine = torch.cat([moment.flatten() for moment in actual.values()])
    theirs = torch.cat([saved[f"exp_avg/{weight}"].flatten() for weight in actual])
    error = ((mine - theirs).norm() / theirs.norm()).item()
    assert error < limit
    assert theirs.norm().item() == pytest.approx(settings["max_grad_norm"] or metrics["trainer/grad_norm"], rel=1e-3)
    said = json.loads((updated / name / "metrics.json").read_text())
    assert said["trainer/grad_norm"] == pytest.approx(metrics["trainer/grad_norm"], rel=max(limit, 1e-4))
    assert said["trainer/grad_norm"] > 0.2  # so that it is clipped where it is to be


def test_an_update_that_is_not_finite_changes_nothing_on_any_rank(folder: Path, tmp_path: Path) -> None:
    stages = {f"stage {stage}": {"options": {"stage": stage}} for stage in STAGES}
    halves = BF16 | {name: FP16[name] for name in ("stage 0 fp16", "stage 2 fp16")}
    run_scene("collapses", folder, tmp_path, json.dumps(stages | halves))
    for name in stages | halves:
        for rank in range(2):
            message = (tmp_path / f"{name}-{rank}.txt").read_text()
            assert message.startswith("step 1, update 2 of 10: the loss is nan and the norm of its gradient")


def test_a_gradient_too_large_for_the_lowest_loss_scale_is_a_collapse_and_no_endless_retry(
    folder: Path, tmp_path: Path
) -> None:
    lowest = {"fp16": True, "config": {"fp16": {"min_loss_scale": 4096}}}
    runs = {f"stage {stage}": {"options": {"stage": stage, **lowest}, "advantage": 1e30} for stage in STAGES}
    run_scene("collapses", folder, tmp_path, json.dumps(runs))
    for name in runs:
        for rank in range(2):
            message = (tmp_path / f"{name}-{rank}.txt").read_text()
            assert re.match(
                r"step 1, update 2 of 10: the loss is -?[\d.]+e\+\d+ and the norm of its gradient nan", message
            )

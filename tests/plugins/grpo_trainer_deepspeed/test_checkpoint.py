"""Checkpoints of real DeepSpeed engines on two ranks: training goes on bit by bit; exports and streams are what was
trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file

from tests.plugins.grpo_trainer_deepspeed.running import run_scene
from tests.tiny_models import make_model_folder

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1800)]

RUNS = {
    "stage 0": {"options": {"stage": 0}},
    "stage 0 bf16": {"options": {"stage": 0}, "precision": "bf16"},
    "stage 1": {"options": {"stage": 1}},
    "stage 2 bf16": {"options": {"stage": 2}, "precision": "bf16"},
    "stage 3 bf16": {"options": {"stage": 3}, "precision": "bf16"},
    "stage 3 LoRA": {"options": {"stage": 3}, "lora": {"rank": 4}},
    "stage 2 decay": {"options": {"stage": 2}, "weight_decay": 0.1},
}

ELSEWHERE = ("stage 0", "stage 1", "stage 2 decay", "stage 3 LoRA")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model_folder(tmp_path_factory.mktemp("qwen3") / "model", tie_word_embeddings=True)


@pytest.fixture(scope="module")
def restored(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    scratch = tmp_path_factory.mktemp("restored")
    run_scene("restores", folder, scratch, json.dumps(RUNS))
    return scratch


@pytest.mark.parametrize("name", RUNS)
def test_a_restored_trainer_goes_on_bit_by_bit(name: str, restored: Path) -> None:
    for file in ("weights.safetensors", "moments.safetensors"):
        one, other = (load_file(restored / name / way / file) for way in ("through", "resumed"))
        assert one.keys() == other.keys()
        assert all(torch.equal(one[weight], other[weight]) for weight in one)


@pytest.mark.parametrize("name", RUNS)
def test_an_export_is_the_streamed_weights_as_transformers_loads_them(name: str, restored: Path) -> None:
    streamed = load_file(restored / name / "resumed" / "weights.safetensors")
    model = transformers.AutoModelForCausalLM.from_pretrained(restored / name / "exported", dtype="auto")
    exported = dict(model.named_parameters())
    assert exported.keys() == streamed.keys()
    assert all(torch.equal(exported[weight], streamed[weight]) for weight in exported)
    assert transformers.AutoTokenizer.from_pretrained(restored / name / "exported")("a").input_ids


def test_the_adapter_alone_is_the_one_beside_the_merged_model(restored: Path) -> None:
    folder = restored / "stage 3 LoRA"
    alone, beside = (
        load_file(way / "adapter_model.safetensors") for way in (folder / "adapter", folder / "exported/adapter")
    )
    assert alone.keys() == beside.keys()
    assert all(torch.equal(alone[weight], beside[weight]) for weight in alone)
    assert any(weight.abs().max() > 0 for name, weight in alone.items() if "lora_B" in name)


@pytest.mark.parametrize("name", [name for name in RUNS if "LoRA" not in name])
def test_the_module_for_generation_has_the_streamed_weights(name: str, restored: Path) -> None:
    streamed = load_file(restored / name / "resumed" / "weights.safetensors")
    shared = load_file(restored / name / "shared.safetensors")
    assert shared.keys() == streamed.keys()
    assert all(torch.equal(shared[weight], streamed[weight]) for weight in shared)


@pytest.fixture(scope="module")
def on_three(folder: Path, restored: Path) -> Path:
    run_scene("goes_on", folder, restored, json.dumps({name: RUNS[name] for name in ELSEWHERE}), count=3)
    return restored


@pytest.mark.parametrize("name", ELSEWHERE)
def test_three_ranks_restore_what_two_saved_and_make_the_same_update(name: str, on_three: Path) -> None:
    pairs = (("first", "restored on 3", 0.0), ("through", "went on with 3", 2e-6))
    for expected, actual, tolerance in pairs:
        for file in ("weights.safetensors", "moments.safetensors"):
            one, other = (load_file(on_three / name / way / file) for way in (expected, actual))
            assert one.keys() == other.keys()
            for weight in one:
                torch.testing.assert_close(other[weight], one[weight], rtol=0.0, atol=tolerance)


@pytest.mark.slow
def test_three_ranks_begin_with_what_two_saved_before_the_first_update(folder: Path, tmp_path: Path) -> None:
    run_scene("saves_untrained", folder, tmp_path)
    run_scene("begins", folder, tmp_path, count=3)

"""The torch trainer with adapters: gradients, reference, precision, checkpoints, streams, exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor

from grpo_core.errors import CheckpointError
from grpo_core.recipe.schema import ObjectiveSettings
from grpo_core.trainer.backend import TorchTrainer
from grpo_core.types import UpdateReport
from tests.core.model.adapters import load_plain, logits, peft_adapter, randomise
from tests.core.trainer.batches import (
    UNTOUCHED,
    assert_same_gradients,
    gradient_of_update,
    make_batch,
    make_trainer,
    plain_gradient,
    plain_logprobs,
    with_numbers,
)
from tests.tiny_models import FAMILIES, Family, make_model_folder

RANK_4: dict[str, Any] = {"rank": 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model_folder(tmp_path_factory.mktemp("qwen3") / "model")


@pytest.fixture(scope="module")
def untied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model_folder(tmp_path_factory.mktemp("llama") / "model", "llama")


def trainer_of(folder: Path, lora: dict[str, Any] | None = None, **more: Any) -> TorchTrainer:
    """A trainer whose adapter is not the fresh one, which would hide half of what can go wrong."""
    trainer = make_trainer(folder, lora=RANK_4 if lora is None else lora, **more)
    randomise(trainer.module())
    return trainer


def train(trainer: TorchTrainer, seeds: range) -> list[UpdateReport]:
    return [trainer.update(make_batch(seed=seed)) for seed in seeds]


def saved(trainer: TorchTrainer, directory: Path) -> Path:
    directory.mkdir()
    trainer.save(directory)
    return directory


def frozen(trainer: TorchTrainer) -> dict[str, Tensor]:
    weights = trainer.module().named_parameters()
    return {name: weight.detach().clone() for name, weight in weights if not weight.requires_grad}


@pytest.mark.parametrize("objective", [{"loss": "grpo", "beta": 0.1, "entropy_bonus": 0.01}, {"loss": "dapo"}])
def test_the_gradient_is_the_plain_one_however_the_update_is_cut(
    untied: Path, tmp_path: Path, objective: dict[str, Any]
) -> None:
    @hypothesis_settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        micro_batch_tokens=st.integers(1, 400),
        chunk_tokens=st.integers(1, 60),
        checkpointing=st.booleans(),
        lora=st.sampled_from([RANK_4, {"modules_to_save": ("lm_head",)}, {"targets": ("lm_head", "q_proj")}]),
    )
    def holds(micro_batch_tokens: int, chunk_tokens: int, checkpointing: bool, lora: dict[str, Any]) -> None:
        trainer = trainer_of(
            untied,
            lora,
            objective=objective,
            micro_batch_tokens=micro_batch_tokens,
            gradient_checkpointing=checkpointing,
            options={"chunk_tokens": chunk_tokens},
            **UNTOUCHED,
        )
        batch = make_batch(temperature=0.7, signal_free=(1,))
        stats = trainer.logprobs(batch, "policy")
        batch = with_numbers(batch, stats, "old_logprobs", "reference_logprobs", "sampling_logprobs", noise=0.2)
        model = trainer.module()
        expected = plain_gradient(model, batch, ObjectiveSettings(**objective))
        model.zero_grad()
        found = gradient_of_update(trainer, batch, tmp_path)
        assert found.keys() == expected.keys() == {n for n, weight in model.named_parameters() if weight.requires_grad}
        assert_same_gradients(found, expected)

    holds()


@pytest.mark.parametrize("family", FAMILIES)
def test_logprobs_are_those_of_the_plain_forward_in_every_family(tmp_path: Path, family: Family) -> None:
    trainer = trainer_of(make_model_folder(tmp_path, family), options={"chunk_tokens": 5})
    batch = make_batch(groups=1)
    [row], [group] = trainer.logprobs(batch, "policy").logprobs, batch.groups
    assert trainer.policy_path == "chunked"
    for found, member in zip(row, group.members, strict=True):
        with torch.no_grad():
            expected, _ = plain_logprobs(trainer.module(), group.prompt_ids, member.token_ids)
        torch.testing.assert_close(torch.tensor(found), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_only_the_adapter_is_trained_and_has_numbers_of_the_optimiser(
    folder: Path, tmp_path: Path, precision: str
) -> None:
    trainer = trainer_of(folder, precision=precision)
    before = frozen(trainer)
    train(trainer, range(2))
    after = frozen(trainer)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(weight.grad is None for weight in trainer.module().parameters())
    directory = saved(trainer, tmp_path / "checkpoint")
    weights, numbers = (load_file(directory / f"{name}.safetensors") for name in ("weights", "optimizer"))
    names = {name for name, weight in trainer.module().named_parameters() if weight.requires_grad}
    assert weights.keys() == names
    assert {name.split("/", 1)[1] for name in numbers} == names
    assert {weight.dtype for weight in weights.values()} == {torch.float32}  # the masters


def test_bf16_adapters_learn_what_their_precision_cannot_hold(folder: Path, tmp_path: Path) -> None:
    trainer = trainer_of(folder, precision="bf16", learning_rate=1e-6)
    train(trainer, range(1))
    masters = load_file(saved(trainer, tmp_path / "checkpoint") / "weights.safetensors")
    live = dict(trainer.module().named_parameters())
    assert any(bool((masters[name] != live[name]).any()) for name in masters)
    assert all(torch.equal(masters[name].bfloat16(), live[name]) for name in masters)


def test_gradient_checkpointing_recomputes_each_layer_once(folder: Path, tmp_path: Path) -> None:
    batch = make_batch()
    plain, recomputing = (trainer_of(folder, gradient_checkpointing=on, **UNTOUCHED) for on in (False, True))
    calls: list[None] = []
    recomputing.module().model.layers[0].mlp.register_forward_pre_hook(lambda *_: calls.append(None))
    expected = gradient_of_update(plain, batch, tmp_path / "plain")
    recomputing.logprobs(batch, "policy")
    calls.clear()
    found = gradient_of_update(recomputing, batch, tmp_path / "recomputing")
    assert len(calls) == 2
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-5, atol=1e-7)


def test_the_reference_is_the_model_without_its_adapter_and_costs_no_second_one(folder: Path) -> None:
    trainer = make_trainer(folder, lora=RANK_4, objective={"beta": 0.1})
    batch = make_batch()
    before = trainer.logprobs(batch, "reference")
    assert before == trainer.logprobs(batch, "policy") == make_trainer(folder).logprobs(batch, "policy")
    trainer.update(with_numbers(batch, before, "reference_logprobs"))
    assert before == trainer.logprobs(batch, "reference")
    assert before != trainer.logprobs(batch, "policy")
    assert trainer._reference is None


def test_the_reference_of_a_starting_adapter_is_the_policy_as_the_run_began(untied: Path, tmp_path: Path) -> None:
    peft_adapter(untied, tmp_path / "adapter", modules_to_save=["lm_head"])
    settings = {"lora": {"adapter": str(tmp_path / "adapter")}, "objective": {"beta": 0.1}}
    trainer = make_trainer(untied, **settings)
    batch = make_batch()
    start = trainer.logprobs(batch, "policy")
    assert start == trainer.logprobs(batch, "reference")
    trainer.update(with_numbers(batch, start, "reference_logprobs"))
    directory = saved(trainer, tmp_path / "checkpoint")
    resumed = make_trainer(untied, **settings)
    resumed.restore(directory)
    assert resumed.logprobs(batch, "reference") == start
    assert resumed.logprobs(batch, "policy") == trainer.logprobs(batch, "policy") != start


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("lora", [RANK_4, {"modules_to_save": ("lm_head", "embed_tokens")}])
def test_a_restored_trainer_goes_on_bit_by_bit(
    untied: Path, tmp_path: Path, precision: str, lora: dict[str, Any]
) -> None:
    settings: dict[str, Any] = {"precision": precision, "schedule": "cosine", "weight_decay": 0.1, "lora": lora}
    through = make_trainer(untied, **settings)
    train(through, range(3))
    directory = saved(through, tmp_path / "checkpoint")
    resumed = make_trainer(untied, **settings)
    train(resumed, range(5, 6))
    resumed.restore(directory)
    assert train(through, range(3, 6)) == train(resumed, range(3, 6))
    for (name, expected), (_, actual) in zip(through.iter_weights(), resumed.iter_weights(), strict=True):
        assert torch.equal(actual, expected), name


def test_a_stream_after_a_resume_has_the_adapter_once(folder: Path, tmp_path: Path) -> None:
    trainer = trainer_of(folder)
    train(trainer, range(1))
    directory = saved(trainer, tmp_path / "checkpoint")
    resumed = make_trainer(folder, lora=RANK_4)
    list(resumed.iter_weights())
    resumed.restore(directory)
    for _ in range(2):
        plain = load_plain(folder)
        plain.load_state_dict(dict(resumed.iter_weights()), strict=False)
        torch.testing.assert_close(logits(plain), logits(trainer.module()), rtol=1e-4, atol=1e-4)


def test_a_checkpoint_of_another_rank_or_of_all_weights_is_refused(folder: Path, tmp_path: Path) -> None:
    directory = saved(trainer_of(folder), tmp_path / "rank 4")
    whole = saved(make_trainer(folder), tmp_path / "whole")
    with pytest.raises(CheckpointError, match=r"lora_A\.default\.weight has the shape \[4, 48\], and \[2, 48\]"):
        make_trainer(folder, lora={"rank": 2}).restore(directory)
    with pytest.raises(CheckpointError, match="has a weight the model does not know"):
        trainer_of(folder).restore(whole)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_an_export_is_the_whole_model_and_the_adapter(folder: Path, tmp_path: Path, precision: str) -> None:
    trainer = trainer_of(folder, precision=precision)
    trainer.export(tmp_path / "final")
    model = load_plain(tmp_path / "final")
    merged = model.state_dict()
    assert all(torch.equal(merged[name], tensor) for name, tensor in trainer.iter_weights())
    mean_gap = (logits(model) - logits(trainer.module())).abs().mean()
    assert mean_gap < (1e-5 if precision == "fp32" else 0.03)
    assert (tmp_path / "final/tokenizer.json").is_file()
    config = json.loads((tmp_path / "final/adapter/adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == str(folder)
    assert config["r"] == 4


def test_the_adapter_alone_is_the_one_of_an_export(folder: Path, tmp_path: Path) -> None:
    trainer = trainer_of(folder)
    trainer.export(tmp_path / "final")
    trainer.export_adapter(tmp_path / "alone")
    alone, exported = tmp_path / "alone", tmp_path / "final" / "adapter"
    assert (alone / "adapter_config.json").read_text() == (exported / "adapter_config.json").read_text()
    weights, expected = (load_file(each / "adapter_model.safetensors") for each in (alone, exported))
    assert {name: weight.tolist() for name, weight in weights.items()} == {n: w.tolist() for n, w in expected.items()}
    assert not (alone / "model.safetensors").exists()


def test_a_run_goes_on_from_the_adapter_of_another_or_from_its_merged_model(folder: Path, tmp_path: Path) -> None:
    trainer = trainer_of(folder)
    trainer.export(tmp_path / "final")
    batch = make_batch()
    expected = trainer.logprobs(batch, "policy")
    same = make_trainer(folder, lora={"adapter": str(tmp_path / "final/adapter")})
    assert same.logprobs(batch, "policy") == expected
    merged = make_trainer(tmp_path / "final", lora=RANK_4).logprobs(batch, "policy")
    flat = [torch.tensor([v for g in stats.logprobs for row in g for v in row]) for stats in (merged, expected)]
    torch.testing.assert_close(flat[0], flat[1], rtol=1e-4, atol=1e-4)

"""Images in the torch trainer: encoded once a group, and every number and gradient is that of the plain path."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from grpo_core.backends import ModelSettings
from grpo_core.errors import TrainerError
from grpo_core.model.image_features import ImageFeatures, encode_images, tower_of
from grpo_core.model.vision import load_vision
from grpo_core.protocols import TrainerBackend
from grpo_core.trainer import images as images_module
from grpo_core.types import TrainBatch
from tests.core.trainer.batches import (
    UNTOUCHED,
    assert_same_gradients,
    gradient_of_update,
    make_trainer,
    with_numbers,
)
from tests.core.trainer.vl_batches import counted_tower, make_vl_batch, plain_vl_gradient, plain_vl_logprobs
from tests.vl_models import VL_FAMILIES, make_vl_folder

SMALL, LARGE = 60, 4000
"""Tokens of a micro-batch: a group is several, or all groups are one."""


@pytest.fixture(scope="module", params=VL_FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_vl_folder(request.param, tmp_path_factory.mktemp("vl") / request.param)


@pytest.fixture(scope="module", params=["qwen3_vl", "idefics3"])
def other(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two families that differ in all that matters here."""
    return make_vl_folder(request.param, tmp_path_factory.mktemp("vl") / request.param)


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_vl_folder("qwen2_vl", tmp_path_factory.mktemp("vl") / "qwen2_vl")


@pytest.mark.parametrize("shared_prefix", ["require", "off"])
def test_the_gradient_is_that_of_the_path_that_encodes_images_for_each_completion(
    folder: Path, tmp_path: Path, shared_prefix: str
) -> None:
    trainer = make_trainer(folder, micro_batch_tokens=SMALL, shared_prefix=shared_prefix, **UNTOUCHED)
    batch = make_vl_batch(folder, temperature=0.8)
    expected = plain_vl_gradient(trainer.module(), folder, batch)
    found = gradient_of_update(trainer, batch, tmp_path)
    assert trainer.policy_path == "chunked"
    unused = found.keys() - expected.keys()  # Idefics' tower ends in a norm that another part of it is for
    assert all(not found.pop(name).any() for name in unused)
    assert_same_gradients(found, expected)
    assert any(("visual" in name or "vision" in name) and gradient.any() for name, gradient in found.items())


def test_log_probabilities_are_those_of_the_models_own_forward(other: Path) -> None:
    trainer = make_trainer(other, micro_batch_tokens=LARGE)
    vision = load_vision(ModelSettings(path=str(other)))
    batch = make_vl_batch(other, temperature=0.7, members=2)
    stats = trainer.logprobs(batch, "policy")
    for group, rows in zip(batch.groups, stats.logprobs, strict=True):
        for member, row in zip(group.members, rows, strict=True):
            with torch.no_grad():
                expected = plain_vl_logprobs(trainer.module(), vision, group, member.token_ids, 0.7)
            torch.testing.assert_close(torch.tensor(row), expected, rtol=0, atol=1e-4)


def test_the_gradient_is_the_same_however_the_update_is_cut(qwen: Path, tmp_path: Path) -> None:
    batch = make_vl_batch(qwen, temperature=0.8)
    expected = plain_vl_gradient(make_trainer(qwen).module(), qwen, batch)
    for budget in (1, 150, LARGE):
        trainer = make_trainer(qwen, micro_batch_tokens=budget, **UNTOUCHED)
        assert_same_gradients(gradient_of_update(trainer, batch, tmp_path), expected)


@pytest.mark.parametrize(("budget", "calls"), [(SMALL, 3), (60, 3), (LARGE, 1)])
def test_each_image_passes_the_tower_once_a_pass_however_the_update_is_cut(qwen: Path, budget: int, calls: int) -> None:
    trainer = make_trainer(qwen, micro_batch_tokens=budget)
    batch = make_vl_batch(qwen)
    vision = load_vision(ModelSettings(path=str(qwen)))
    assert vision is not None
    inputs = [vision.process(group.images) for group in batch.groups if group.images]
    patches = sum(len(each.tensors["pixel_values"]) for each in inputs)
    trainer.logprobs(make_vl_batch(qwen, members=1), "policy")  # the check of the first call
    with counted_tower(trainer.module()) as seen:
        trainer.logprobs(batch, "policy")
    assert (len(seen), sum(seen)) == (calls, patches)
    with counted_tower(trainer.module()) as seen:
        metrics = trainer.update(batch).metrics
    assert (len(seen), sum(seen)) == (calls, patches)
    assert metrics["trainer/tower_calls"] == calls
    assert metrics["trainer/visual_tokens"] == sum(each.tokens for each in inputs)
    assert (metrics["trainer/micro_batches"] > calls + 1) == (budget < LARGE)


def test_a_group_without_a_signal_is_not_encoded(qwen: Path) -> None:
    trainer = make_trainer(qwen)
    batch = make_vl_batch(qwen, signal_free=(0, 2, 3))
    trainer.logprobs(batch, "policy")  # the checks of the first call
    with counted_tower(trainer.module()) as seen:
        metrics = trainer.update(batch).metrics
    assert (seen, metrics["trainer/visual_tokens"], metrics["trainer/tower_calls"]) == ([], 0, 0)


def test_the_first_call_with_images_is_compared_with_the_models_own_forward_of_pixels(
    qwen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, mixed = make_vl_batch(qwen, [(), ()]), make_vl_batch(qwen)
    trainer = make_trainer(qwen)
    with counted_tower(trainer.module()) as seen:
        trainer.logprobs(text, "policy")
        assert (trainer.policy_path, len(seen)) == ("chunked", 0)
        trainer.logprobs(mixed, "policy")
        assert len(seen) == 3  # prompts once against prompts repeated; the round; its comparison with pixels
        trainer.logprobs(mixed, "policy")
        assert len(seen) == 4


def test_the_plain_path_reads_images_too(qwen: Path, tmp_path: Path) -> None:
    batch = make_vl_batch(qwen)
    gradients = []
    for path in ("chunked", "plain"):
        trainer = make_trainer(qwen, micro_batch_tokens=SMALL, **UNTOUCHED)
        trainer._policy.path = path  # type: ignore[assignment]
        gradients.append(gradient_of_update(trainer, batch, tmp_path / path))
        assert trainer.policy_path == path
    assert_same_gradients(gradients[1], gradients[0])


class OwnScale(nn.Module):
    """A head that scales its logits in a way that no config names."""

    def __init__(self, projection: nn.Module) -> None:
        super().__init__()
        self.projection = projection

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        scaled: torch.Tensor = self.projection(hidden) * 0.5
        return scaled


def test_an_unknown_head_is_found_out_by_a_row_with_an_image_and_images_are_encoded_once_all_the_same(
    qwen: Path, tmp_path: Path
) -> None:
    trainer = make_trainer(qwen, micro_batch_tokens=SMALL, freeze=("lm_head",), **UNTOUCHED)
    model: Any = trainer.module()
    model.lm_head = OwnScale(model.lm_head)
    batch = make_vl_batch(qwen)
    expected = plain_vl_gradient(model, qwen, batch)
    found = gradient_of_update(trainer, batch, tmp_path)
    assert trainer.policy_path == "plain"
    assert_same_gradients(found, expected)


def test_a_family_whose_features_are_not_what_its_own_forward_reads_is_refused(
    qwen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(model: Any, inputs: Any) -> ImageFeatures:
        features = encode_images(model, inputs)
        return replace(features, pooled=tuple(None if each is None else each * 3 for each in features.pooled))

    monkeypatch.setattr(images_module, "encode_images", wrong)
    with pytest.raises(
        TrainerError, match=r"Qwen2VLForCond\w+ does not make of images that are encoded once what its own"
    ):
        make_trainer(qwen).logprobs(make_vl_batch(qwen), "policy")


def same_stats(one: TrainerBackend, other: TrainerBackend, batch: TrainBatch, *, atol: float) -> None:
    for mine, yours in zip(
        one.logprobs(batch, "policy").logprobs, other.logprobs(batch, "policy").logprobs, strict=True
    ):
        for row, expected in zip(mine, yours, strict=True):
            torch.testing.assert_close(torch.tensor(row), torch.tensor(expected), rtol=0, atol=atol)


def test_activations_that_are_computed_again_give_the_same_gradient(qwen: Path, tmp_path: Path) -> None:
    batch = make_vl_batch(qwen)
    kept, again = (
        gradient_of_update(
            make_trainer(qwen, gradient_checkpointing=flag, micro_batch_tokens=SMALL, **UNTOUCHED),
            batch,
            tmp_path / str(flag),
        )
        for flag in (False, True)
    )
    assert_same_gradients(again, kept)


def test_a_frozen_tower_has_no_graph_no_gradient_and_no_numbers_of_adamw(other: Path, tmp_path: Path) -> None:
    objective = {"beta": 0.1}
    trainer = make_trainer(other, objective=objective, freeze=("vision",), precision="bf16", micro_batch_tokens=SMALL)
    tower = dict(tower_of(trainer.module()).named_parameters())
    before = {name: weight.clone() for name, weight in tower.items()}
    requires = []
    hook = tower_of(trainer.module()).register_forward_hook(
        lambda _, __, output: requires.append(output.last_hidden_state.requires_grad)
    )
    batch = make_vl_batch(other)
    batch = with_numbers(batch, trainer.logprobs(batch, "reference"), "reference_logprobs")
    trainer.update(batch)
    hook.remove()
    assert requires
    assert not any(requires)
    assert all(weight.grad is None and torch.equal(weight, before[name]) for name, weight in tower.items())
    trainer.save(tmp_path)
    kept = load_file(tmp_path / "optimizer.safetensors")
    assert kept
    assert not [name for name in kept if "visual." in name or "vision_model." in name]


def test_what_joins_the_tower_to_the_text_is_trained_where_the_tower_is_frozen(tmp_path: Path) -> None:
    folder = make_vl_folder("idefics3", tmp_path / "model")
    batch = make_vl_batch(folder)
    whole, part = (
        gradient_of_update(
            make_trainer(folder, freeze=names, micro_batch_tokens=SMALL, **UNTOUCHED), batch, tmp_path / str(len(names))
        )
        for names in ((), ("vision",))
    )
    assert [name for name in part if "connector" in name]
    assert_same_gradients(part, {name: whole[name] for name in part})


@pytest.mark.parametrize("lora", [None, {"rank": 4, "vision": True}])
def test_an_exported_model_reads_images_and_trains_again(
    other: Path, tmp_path: Path, lora: dict[str, Any] | None
) -> None:
    trainer = make_trainer(other, lora=lora, learning_rate=1e-2)
    batch = make_vl_batch(other)
    trainer.update(batch)
    trainer.update(batch)
    trainer.export(tmp_path)
    again = make_trainer(tmp_path)
    same_stats(again, trainer, make_vl_batch(tmp_path), atol=1e-4)
    again.update(make_vl_batch(tmp_path))
    with pytest.raises(AssertionError):  # it is no longer the model that it began as
        same_stats(again, make_trainer(other), batch, atol=1e-4)


def test_an_adapter_goes_on_from_its_own_file(qwen: Path, tmp_path: Path) -> None:
    batch = make_vl_batch(qwen)
    trainer = make_trainer(qwen, lora={"rank": 4}, learning_rate=1e-2)
    trainer.update(batch)
    trainer.update(batch)
    trainer.export_adapter(tmp_path)
    same_stats(make_trainer(qwen, lora={"adapter": str(tmp_path)}), trainer, batch, atol=1e-5)


def test_a_restored_trainer_goes_on_bit_by_bit(qwen: Path, tmp_path: Path) -> None:
    batch, following = make_vl_batch(qwen), make_vl_batch(qwen, seed=3)
    settings: dict[str, Any] = {"precision": "bf16", "micro_batch_tokens": SMALL}
    through = make_trainer(qwen, **settings)
    through.update(batch)
    through.save(tmp_path)
    resumed = make_trainer(qwen, **settings)
    resumed.update(following)
    resumed.restore(tmp_path)
    assert through.logprobs(batch, "policy") == resumed.logprobs(batch, "policy")
    assert through.update(following) == resumed.update(following)
    assert all(torch.equal(one, dict(resumed.iter_weights())[name]) for name, one in through.iter_weights())


def test_bf16_gradients_are_those_of_fp32_but_for_rounding(qwen: Path, tmp_path: Path) -> None:
    batch = make_vl_batch(qwen)
    precise, rounded = (
        gradient_of_update(
            make_trainer(qwen, precision=precision, micro_batch_tokens=SMALL, **UNTOUCHED), batch, tmp_path / precision
        )
        for precision in ("fp32", "bf16")
    )
    gap = sum(float((rounded[name] - each).square().sum()) for name, each in precise.items())
    assert gap**0.5 < 0.1 * sum(float(each.square().sum()) for each in precise.values()) ** 0.5

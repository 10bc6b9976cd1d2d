"""Images in the torch trainer: encoded once a group, and every number and gradient is that of the plain path."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from grpo_core.backends import ModelSettings
from grpo_core.model.vision import load_vision
from tests.core.trainer.batches import UNTOUCHED, assert_same_gradients, gradient_of_update, make_trainer
from tests.core.trainer.vl_batches import counted_tower, make_vl_batch, plain_vl_gradient, plain_vl_logprobs
from tests.vl_models import VL_FAMILIES, VlFamily, make_vl_folder

SMALL, LARGE = 60, 4000
"""Tokens of a micro-batch: a group is several, or all groups are one."""


@pytest.fixture(scope="module", params=VL_FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_vl_folder(request.param, tmp_path_factory.mktemp("vl") / request.param)


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_vl_folder("qwen2_vl", tmp_path_factory.mktemp("vl") / "qwen2_vl")


@pytest.mark.parametrize("budget", [SMALL, LARGE])
def test_the_gradient_is_that_of_the_path_that_encodes_images_for_each_completion(
    folder: Path, tmp_path: Path, budget: int
) -> None:
    trainer = make_trainer(folder, micro_batch_tokens=budget, **UNTOUCHED)
    batch = make_vl_batch(folder, temperature=0.8)
    expected = plain_vl_gradient(trainer.module(), folder, batch)
    found = gradient_of_update(trainer, batch, tmp_path)
    assert trainer.policy_path == "chunked"
    unused = found.keys() - expected.keys()  # Idefics' tower ends in a norm that another part of it is for
    assert all(not found.pop(name).any() for name in unused)
    assert_same_gradients(found, expected)
    assert any(("visual" in name or "vision" in name) and gradient.any() for name, gradient in found.items())


@pytest.mark.parametrize("budget", [SMALL, LARGE])
def test_log_probabilities_are_those_of_the_models_own_forward(folder: Path, budget: int) -> None:
    trainer = make_trainer(folder, micro_batch_tokens=budget)
    vision = load_vision(ModelSettings(path=str(folder)))
    batch = make_vl_batch(folder, temperature=0.7, members=2)
    stats = trainer.logprobs(batch, "policy")
    for group, rows in zip(batch.groups, stats.logprobs, strict=True):
        for member, row in zip(group.members, rows, strict=True):
            with torch.no_grad():
                expected = plain_vl_logprobs(trainer.module(), vision, group, member.token_ids, 0.7)
            torch.testing.assert_close(torch.tensor(row), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("budget", "calls"), [(SMALL, 3), (150, 3), (LARGE, 1)])
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
        assert len(seen) == 2  # the round, and the comparison
        trainer.logprobs(mixed, "policy")
        assert len(seen) == 3


@pytest.mark.parametrize("family", ["qwen2_vl", "idefics3"])
def test_the_plain_path_reads_images_too(family: VlFamily, tmp_path: Path) -> None:
    folder = make_vl_folder(family, tmp_path / "model")
    batch = make_vl_batch(folder)
    gradients = []
    for path in ("chunked", "plain"):
        trainer = make_trainer(folder, micro_batch_tokens=SMALL, **UNTOUCHED)
        trainer._policy.path = path  # type: ignore[assignment]
        gradients.append(gradient_of_update(trainer, batch, tmp_path / path))
        assert trainer.policy_path == path
    assert_same_gradients(gradients[1], gradients[0])

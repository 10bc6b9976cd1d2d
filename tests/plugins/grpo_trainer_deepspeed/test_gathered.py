"""The second module of stage 3; how its weights are gathered is tested on real ranks."""

from __future__ import annotations

import pytest
import torch

from grpo_trainer_deepspeed.gathered import Gathered
from tests.tiny_models import make_model

CPU = torch.device("cpu")
IDS = torch.tensor([[1, 2, 3]])


@pytest.mark.parametrize("tied", [False, True])
def test_it_computes_what_the_trained_model_does_whenever_it_is_filled(tied: bool) -> None:
    model = make_model(tie_word_embeddings=tied)
    gathered = Gathered(model)
    for change in (0.0, 0.5):
        with torch.no_grad():
            model.lm_head.weight.add_(change)
            model.model.norm.weight.add_(change)
        gathered.fill(model, CPU)
        assert torch.equal(gathered.model(IDS).logits, model(IDS).logits)
        assert (gathered.model.lm_head.weight is gathered.model.model.embed_tokens.weight) is tied
        gathered.clear()


def test_it_has_no_memory_before_and_after() -> None:
    model = make_model()
    gathered = Gathered(model)
    for _ in range(2):
        assert all(weight.is_meta for weight in gathered.model.parameters())
        gathered.fill(model, CPU)
        assert not any(weight.is_meta or weight.requires_grad for weight in gathered.model.parameters())
        gathered.clear()
    assert not any(weight.is_meta for weight in model.parameters())


def test_its_weights_are_its_own() -> None:
    model = make_model()
    gathered = Gathered(model)
    gathered.fill(model, CPU)
    gathered.clear()
    assert model(IDS).logits.isfinite().all()
    assert dict(model.named_parameters()).keys() == dict(gathered.model.named_parameters()).keys()


def test_a_rank_that_only_helps_keeps_nothing() -> None:
    gathered = Gathered(model := make_model())
    gathered.fill(model, CPU, keep=False)
    assert all(weight.is_meta for weight in gathered.model.parameters())

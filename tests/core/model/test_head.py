"""Backbone and head together are the model's own forward, in every family."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from grpo_core.errors import TrainerError
from grpo_core.model.head import backbone_of, head_of
from tests.tiny_models import FAMILIES, Family, make_model


@pytest.mark.parametrize("family", FAMILIES)
def test_backbone_and_head_give_the_plain_models_logits(family: Family) -> None:
    model = make_model(family)
    ids_BT = torch.randint(0, 256, (2, 20), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        logits_BTV = head_of(model)(backbone_of(model)(ids_BT).last_hidden_state)
        torch.testing.assert_close(logits_BTV, model(ids_BT).logits, rtol=0, atol=0)


def test_a_soft_cap_bounds_the_logits() -> None:
    model = make_model("gemma2", final_logit_softcapping=5.0)
    assert head_of(model)(1e4 * torch.randn(8, 32)).abs().max() == 5.0


def test_a_model_without_output_embedding_is_refused() -> None:
    with pytest.raises(TrainerError, match="SimpleNamespace has no output embedding\n  train a decoder-only"):
        head_of(SimpleNamespace(get_output_embeddings=lambda: None))


def test_a_model_that_is_its_own_backbone_is_refused() -> None:
    with pytest.raises(TrainerError, match="Qwen3Model has no backbone apart from its head"):
        backbone_of(make_model("qwen3").model)

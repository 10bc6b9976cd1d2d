from __future__ import annotations

import pytest
import torch

from grpo_core.errors import RolloutError
from grpo_core.rollout.weights import copy_weights
from tests.tiny_models import make_model


def test_every_weight_is_copied() -> None:
    source, target = make_model("llama", seed=1), make_model("llama", seed=2)
    copy_weights(target, source.state_dict().items())
    assert all(torch.equal(a, b) for a, b in zip(source.parameters(), target.parameters(), strict=True))


def test_weights_are_converted_to_the_models_precision() -> None:
    source, target = make_model("llama", seed=1), make_model("llama", seed=2, dtype=torch.bfloat16)
    copy_weights(target, source.named_parameters())
    assert torch.equal(target.lm_head.weight, source.lm_head.weight.bfloat16())


@pytest.mark.parametrize("names", ["lm_head.weight", "model.embed_tokens.weight", "both"])
def test_of_tied_weights_one_name_is_enough(names: str) -> None:
    source, target = make_model("qwen3", seed=1), make_model("qwen3", seed=2)
    left_out = {"lm_head.weight", "model.embed_tokens.weight"} - {names} if names != "both" else set()
    copy_weights(target, ((name, value) for name, value in source.state_dict().items() if name not in left_out))
    assert torch.equal(target.lm_head.weight, source.lm_head.weight)


def test_weights_that_did_not_come_are_named() -> None:
    source = make_model("llama")
    stream = ((name, value) for name, value in source.state_dict().items() if "mlp" not in name)
    with pytest.raises(RolloutError, match=r"model.layers.0.mlp.gate_proj.weight did not come; .*; and 3 more"):
        copy_weights(make_model("llama"), stream)


def test_unknown_and_misshapen_weights_are_named_after_the_stream_was_read_to_its_end() -> None:
    weights = dict(make_model("llama").state_dict())
    weights["model.norm.weight"] = torch.zeros(3)
    weights = {"adapter.weight": torch.zeros(1), **weights}
    stream = iter(weights.items())
    expected = r"adapter.weight is not one of the model's; model.norm.weight has the shape \[3\], in the model \[32\]"
    with pytest.raises(RolloutError, match=expected):
        copy_weights(make_model("llama"), stream)
    assert next(stream, None) is None

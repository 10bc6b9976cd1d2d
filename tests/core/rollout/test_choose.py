from __future__ import annotations

import logging

import pytest
import torch

from grpo_core.rollout.choose import choose_decoder
from grpo_core.rollout.plain import PlainDecoder
from grpo_core.rollout.prefix import PrefixDecoder
from tests.core.rollout.odd_models import make_linear_attention_model, make_own_attention_model, make_sinks_model
from tests.tiny_models import FAMILIES, Family, make_model

PROMPTS = [(1, 2, 3), (4, 5, 6, 7, 8, 9, 10, 11, 12, 13)]


@pytest.mark.parametrize("family", FAMILIES)
def test_known_families_share_prefixes_and_say_so(family: Family, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="grpo_core"):
        make = choose_decoder(make_model(family), PROMPTS, prefill_tokens=100)
    assert isinstance(make(5), PrefixDecoder)
    assert "decodes with shared prefixes" in caplog.text


def test_attention_with_a_part_of_its_own_is_found_out() -> None:
    with pytest.warns(RuntimeWarning, match=r"GptOssForCausalLM decodes the plain way.*a logit differs by"):
        make = choose_decoder(make_sinks_model(), PROMPTS, prefill_tokens=100)
    assert isinstance(make(5), PlainDecoder)


def test_layers_that_are_no_attention_are_found_out() -> None:
    with pytest.warns(RuntimeWarning, match="layers other than full and sliding-window attention"):
        make = choose_decoder(make_linear_attention_model(), PROMPTS, prefill_tokens=100)
    assert isinstance(make(5), PlainDecoder)


def test_a_model_that_does_not_ask_the_attention_interface_is_found_out() -> None:
    with pytest.warns(RuntimeWarning, match="decodes the plain way"):
        make = choose_decoder(make_own_attention_model(), PROMPTS, prefill_tokens=100)
    assert isinstance(make(5), PlainDecoder)


def test_the_model_stays_as_it_was() -> None:
    model = make_model("qwen3").train()
    model.model.layers[0].eval()
    before = {name: (m.training, id(m)) for name, m in model.named_modules()}
    choose_decoder(model, PROMPTS, prefill_tokens=100)
    assert {name: (m.training, id(m)) for name, m in model.named_modules()} == before
    assert model.config._attn_implementation == "sdpa"
    assert torch.is_grad_enabled()


def test_weights_that_are_nan_are_left_to_be_reported_at_the_first_token() -> None:
    model = make_model("qwen3")
    with torch.no_grad():
        model.model.norm.weight.fill_(float("nan"))
    assert isinstance(choose_decoder(model, PROMPTS, prefill_tokens=100)(5), PrefixDecoder)

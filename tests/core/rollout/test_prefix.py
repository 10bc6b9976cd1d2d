from __future__ import annotations

from typing import Any

import pytest
import torch

from grpo_core.model.attention import has_plain_layers
from grpo_core.rollout.forward import decoding
from grpo_core.rollout.prefix import PrefixDecoder
from grpo_core.rollout.prompts import text_prompts
from tests.core.rollout.teacher import assert_teacher_forced, prompts_of, random_ids, run
from tests.tiny_models import FAMILIES, Family, make_model


def prefix_decoder(model: Any, prefill_tokens: int = 1000) -> PrefixDecoder:
    return PrefixDecoder(model, max_tokens=200, prefill_tokens=prefill_tokens)


@pytest.mark.parametrize("family", FAMILIES)
def test_logprobs_are_those_of_a_plain_forward_over_prompt_and_completion(family: Family) -> None:
    # Windows are 8 tokens: they end inside prompts, between prompt and completion, and inside completions.
    model = make_model(family)
    keep = {4: [0, 1, 13, 3, 12, 5, 6, 11, 8, 9], 9: [0, 2, 4]}
    assert_teacher_forced(model, run(model, prefix_decoder(model), prompts_of(), 14, keep))


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_the_model_reads_prompts_with_its_own_attention(attention: str) -> None:
    model = make_model("qwen3")
    model.set_attn_implementation(attention)
    assert_teacher_forced(model, run(model, prefix_decoder(model), prompts_of(), 3, {}))
    assert model.config._attn_implementation == attention


def test_prompts_of_one_length_need_no_padding() -> None:
    model = make_model("gemma3")
    assert_teacher_forced(model, run(model, prefix_decoder(model), prompts_of((10, 10, 10)), 5, {2: [0, 5, 2]}))


@pytest.mark.parametrize("prefill_tokens", [1, 12, 40])
def test_prompts_can_be_read_in_several_passes(prefill_tokens: int) -> None:
    model = make_model("gemma3")
    assert_teacher_forced(model, run(model, prefix_decoder(model, prefill_tokens), prompts_of(), 4, {}))


def test_completions_longer_than_the_first_buffer_grow_it() -> None:
    model = make_model("qwen3", num_hidden_layers=1)
    assert_teacher_forced(model, run(model, prefix_decoder(model), prompts_of((3, 6)), 140, {70: [0, 4, 2]}), 2e-5)


def test_a_completion_can_leave_every_window_of_its_prompt() -> None:
    model = make_model("mistral")
    assert_teacher_forced(model, run(model, prefix_decoder(model), prompts_of((2, 6)), 30, {}))


def test_all_but_one_sequence_can_leave() -> None:
    model = make_model("llama")
    assert_teacher_forced(model, run(model, prefix_decoder(model), prompts_of(), 6, {1: [10], 3: [0]}))


def test_low_precision_keeps_its_type() -> None:
    model = make_model("qwen3", dtype=torch.bfloat16)
    seen = run(model, prefix_decoder(model), prompts_of(), 5, {2: [0, 4]})
    assert all(logits.dtype == torch.bfloat16 for _, logits in seen)
    assert_teacher_forced(model, seen, tolerance=0.2)


def test_each_prompt_is_forwarded_once_for_all_its_completions() -> None:
    model = make_model("qwen3")
    forwarded: list[int] = []
    model.model.embed_tokens.register_forward_hook(lambda _, args, __: forwarded.append(args[0].numel()))
    with decoding(model):
        prefix_decoder(model).prefill(text_prompts([random_ids(9, 0)]), [50])
    assert forwarded == [9]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_of_full_and_windowed_attention_has_plain_layers(family: Family) -> None:
    assert has_plain_layers(make_model(family))

from __future__ import annotations

import inspect
import logging
from typing import Any

import pytest
import torch
import transformers

from grpo_core.rollout.choose import choose_decoder, slowest_way
from grpo_core.rollout.plain import PlainDecoder
from grpo_core.rollout.prefix import PrefixDecoder
from grpo_core.rollout.whole import WholeDecoder
from tests.core.rollout.many_models import make
from tests.core.rollout.odd_models import make_linear_attention_model, make_own_attention_model, make_sinks_model
from tests.ranks import run_ranks
from tests.tiny_models import FAMILIES, Family, make_model

PROMPTS = [(1, 2, 3), (4, 5, 6, 7, 8, 9, 10, 11, 12, 13)]


@pytest.mark.parametrize("family", FAMILIES)
def test_known_families_share_prefixes_and_say_so(family: Family, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="grpo_core"):
        make = choose_decoder(make_model(family), PROMPTS, prefill_tokens=100)
    assert isinstance(make(5), PrefixDecoder)
    assert "decodes with shared prefixes" in caplog.text


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_with_a_part_of_its_own_is_found_out(dtype: torch.dtype, caplog: pytest.LogCaptureFixture) -> None:
    make = choose_decoder(make_sinks_model().to(dtype), PROMPTS, prefill_tokens=100)
    assert isinstance(make(5), PlainDecoder)
    assert "GptOssForCausalLM decodes the plain way" in caplog.text
    assert "with shared prefixes its log-probabilities are" in caplog.text


def test_layers_that_are_no_attention_are_found_out(caplog: pytest.LogCaptureFixture) -> None:
    make = choose_decoder(make_linear_attention_model(), PROMPTS, prefill_tokens=100)
    assert isinstance(make(5), PlainDecoder)
    assert "it has layers other than full and sliding-window attention" in caplog.text


def test_a_model_without_positions_is_found_out(caplog: pytest.LogCaptureFixture) -> None:
    make = choose_decoder(make_own_attention_model(), PROMPTS, prefill_tokens=100)
    assert isinstance(make(5), PlainDecoder)
    assert "it takes no position ids" in caplog.text


def test_a_model_that_does_not_ask_the_attention_interface_is_found_out(caplog: pytest.LogCaptureFixture) -> None:
    class Deaf(transformers.LlamaForCausalLM):  # passes nothing on to its attention
        def forward(
            self, input_ids: Any, position_ids: Any, cache: Any, use_cache: bool, attention_mask: Any = None, **_: Any
        ) -> Any:
            return super().forward(input_ids, attention_mask, position_ids, cache=cache, use_cache=use_cache)

    make = choose_decoder(Deaf(make_model("llama").config).eval(), PROMPTS, prefill_tokens=100)
    assert isinstance(make(5), PlainDecoder)
    assert "its attention does not take the shared prefix (KeyError: 'grpo_core_prefix_cache')" in caplog.text


def test_what_cannot_be_decoded_step_by_step_is_drawn_by_whole_forwards_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert isinstance(choose_decoder(make("RWKV"), PROMPTS, prefill_tokens=100)(5), WholeDecoder)
    assert "RwkvForCausalLM cannot be decoded step by step, so every token is drawn after a forward" in caplog.text
    assert "with its own cache its log-probabilities are" in caplog.text


def test_a_cache_that_the_family_does_not_take_is_no_internal_error(caplog: pytest.LogCaptureFixture) -> None:
    make_decoder = choose_decoder(make("Qwen3-Next of linear layers"), PROMPTS, prefill_tokens=100)
    assert isinstance(make_decoder(5), WholeDecoder)
    assert "it does not take transformers' cache (ValueError: `get_seq_length`" in caplog.text


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["RWKV", "Mamba"])
def test_lost_context_is_found_where_logits_are_so_small_that_it_hardly_shows(name: str, dtype: torch.dtype) -> None:
    model = make(name).to(dtype)
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(1e-2 if dtype == torch.float32 else 0.1)
    taken = PlainDecoder if name == "Mamba" else WholeDecoder
    decoder = choose_decoder(model, PROMPTS, prefill_tokens=100)(5)
    assert type(decoder) is taken
    if isinstance(decoder, PlainDecoder):
        assert not decoder._masks_steps


@pytest.mark.parametrize("prompts", [[(1, 2, 3, 4, 5)], [(7,)]])
def test_prompts_of_one_length_are_checked_with_padding_all_the_same(prompts: list[tuple[int, ...]]) -> None:
    class Maskless(transformers.LlamaForCausalLM):  # right for any prompt alone
        def forward(self, input_ids: Any, position_ids: Any, cache: Any, use_cache: bool, **_: Any) -> Any:
            return super().forward(input_ids, position_ids=position_ids, cache=cache, use_cache=use_cache)

    torch.manual_seed(0)
    model = Maskless(make_model("llama").config).eval()
    assert isinstance(choose_decoder(model, prompts, prefill_tokens=100)(5), WholeDecoder)


def test_logits_that_a_family_sets_to_minus_infinity_are_no_difference() -> None:
    class Shut(transformers.LlamaForCausalLM):
        def forward(self, *arguments: Any, **more: Any) -> Any:
            output = super().forward(*arguments, **more)
            output.logits[..., 100:] = -torch.inf
            return output

        forward.__signature__ = inspect.signature(transformers.LlamaForCausalLM.forward)  # type: ignore[attr-defined]

    torch.manual_seed(0)
    model = Shut(make_model("llama").config).eval()
    assert isinstance(choose_decoder(model, PROMPTS, prefill_tokens=100)(5), PrefixDecoder)


def test_an_error_for_want_of_memory_is_not_taken_for_a_family_that_does_not_fit() -> None:
    model = make_model("llama")
    kept = model.model.forward

    def forward(*arguments: Any, **more: Any) -> Any:
        if more["use_cache"]:
            raise torch.OutOfMemoryError("no memory")
        return kept(*arguments, **more)

    model.model.forward = forward
    with pytest.raises(torch.OutOfMemoryError):
        choose_decoder(model, PROMPTS, prefill_tokens=100)


def test_the_check_draws_nothing_at_random() -> None:
    before = torch.get_rng_state()
    choose_decoder(make("RWKV"), PROMPTS, prefill_tokens=100)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("family", ["qwen3", "gemma2"])
def test_low_precision_shares_prefixes_too(family: Family) -> None:
    model = make_model(family, dtype=torch.bfloat16)
    assert isinstance(choose_decoder(model, PROMPTS, prefill_tokens=100)(5), PrefixDecoder)


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


@pytest.mark.slow
def test_ranks_go_on_with_the_slowest_way_that_one_of_them_chose() -> None:
    run_ranks(2, "tests.core.rollout.rank_scenes:agree")


def test_one_process_goes_on_with_its_own_way() -> None:
    assert [slowest_way(way, 1) for way in (None, 0, 2)] == [None, 0, 2]

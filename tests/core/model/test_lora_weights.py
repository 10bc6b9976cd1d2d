"""Merged weights under plain names, and the files of an adapter: as peft and transformers read them."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

from grpo_core.model.lora import add_adapter, as_reference
from grpo_core.model.lora_weights import export, merged_weights
from grpo_core.recipe.schema import LoraSettings
from tests.core.model.adapters import adapted_model, load_plain, logits, peft_adapter, randomise
from tests.tiny_models import FAMILIES, Family, make_model, make_model_folder


def load_merged(model: Any, family: Family, **config: Any) -> Any:
    """A plain model with the merged weights of `model`; every name must fit."""
    plain = make_model(family, seed=9, dtype=model.dtype, **config)
    names = [name for name, _ in plain.named_parameters()]
    assert [name for name, _ in merged_weights(model)] == names
    plain.load_state_dict(dict(merged_weights(model)), strict=False)
    return plain


@pytest.mark.parametrize("family", FAMILIES)
def test_merged_weights_are_a_plain_model_that_answers_as_the_adapted_one(family: Family) -> None:
    model = adapted_model(family)
    torch.testing.assert_close(logits(load_merged(model, family)), logits(model), rtol=1e-4, atol=1e-4)


def test_adapters_of_head_and_embeddings_and_modules_trained_whole_are_merged() -> None:
    untied = {"tie_word_embeddings": False}
    for lora in (
        {"targets": ("embed_tokens", "q_proj", "lm_head")},
        {"modules_to_save": ("lm_head", "embed_tokens", "norm")},
    ):
        model = adapted_model("llama", config=untied, **lora)
        torch.testing.assert_close(logits(load_merged(model, "llama", **untied)), logits(model), rtol=1e-4, atol=1e-4)


def test_a_model_with_transposed_weights_is_merged() -> None:
    config = transformers.GPT2Config(vocab_size=272, n_embd=16, n_layer=1, n_head=2, n_positions=32)
    model, plain = (transformers.GPT2LMHeadModel(config).eval() for _ in range(2))
    add_adapter(model, LoraSettings(), seed=0)
    randomise(model)
    plain.load_state_dict(dict(merged_weights(model)), strict=False)
    torch.testing.assert_close(logits(plain), logits(model), rtol=1e-4, atol=1e-5)


def test_merging_rounds_once() -> None:
    model = make_model("llama", dtype=torch.bfloat16)
    add_adapter(model, LoraSettings(rank=2, alpha=6, targets=("q_proj",)), seed=0)
    randomise(model)
    layer = model.model.layers[0].self_attn.q_proj
    up, down = layer.lora_B["default"].weight.float(), layer.lora_A["default"].weight.float()
    expected = (layer.base_layer.weight.float() + 3 * up @ down).bfloat16()
    assert torch.equal(dict(merged_weights(model))["model.layers.0.self_attn.q_proj.weight"], expected)


def test_only_one_merged_weight_exists_at_a_time() -> None:
    model = adapted_model("llama")
    adapted = {id(weight) for weight in model.parameters()}
    for name, weight in merged_weights(model):
        is_merged = name.endswith("_proj.weight")
        own = weight.data_ptr() not in {parameter.data_ptr() for parameter in model.parameters()}
        assert own == is_merged
    assert adapted == {id(weight) for weight in model.parameters()}


def test_nothing_is_merged_twice_nor_left_merged() -> None:
    model = adapted_model("llama")
    before = logits(model)
    first, second = dict(merged_weights(model)), dict(merged_weights(model))
    assert all(torch.equal(first[name], second[name]) for name in first)
    torch.testing.assert_close(logits(model), before, rtol=0, atol=0)


def peft_model(base: Path, adapter: Path) -> Any:
    import peft

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return peft.PeftModel.from_pretrained(load_plain(base), adapter)


@pytest.mark.parametrize(
    ("family", "lora"),
    [("qwen3", {}), ("gemma2", {"rank": 3, "alpha": 5}), ("llama", {"modules_to_save": ("lm_head",)})],
)
def test_an_export_has_the_adapter_for_peft_and_the_whole_model_for_transformers(
    tmp_path: Path, family: Family, lora: dict[str, Any]
) -> None:
    base = make_model_folder(tmp_path / "base", family)
    model = load_plain(base)
    add_adapter(model, LoraSettings(**lora), seed=0)
    randomise(model)
    export(model, tmp_path / "final", base=str(base), merge=True)
    torch.testing.assert_close(logits(load_plain(tmp_path / "final")), logits(model), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(logits(peft_model(base, tmp_path / "final/adapter")), logits(model), rtol=0, atol=0)
    config = json.loads((tmp_path / "final/adapter/adapter_config.json").read_text())
    assert (config["base_model_name_or_path"], config["inference_mode"]) == (str(base), True)
    assert config["task_type"] == "CAUSAL_LM"
    with as_reference(model):  # the export left the model as it was
        torch.testing.assert_close(logits(model), logits(load_plain(base)), rtol=0, atol=0)


def test_an_export_without_merging_is_the_adapter_alone(tmp_path: Path) -> None:
    (tmp_path / "final").mkdir()
    export(adapted_model(), tmp_path / "final", base="somebody/model", merge=False)
    assert {path.name for path in (tmp_path / "final").rglob("*")} == {
        "adapter",
        "adapter_config.json",
        "adapter_model.safetensors",
    }


def test_an_exported_adapter_is_one_to_go_on_with(tmp_path: Path) -> None:
    base = make_model_folder(tmp_path / "base", "llama")
    peft_adapter(base, tmp_path / "theirs", modules_to_save=["lm_head"])
    ours = load_plain(base)
    add_adapter(ours, LoraSettings(adapter=str(tmp_path / "theirs")), seed=0)
    (tmp_path / "final").mkdir()
    export(ours, tmp_path / "final", base=str(base), merge=False)
    for file in ("adapter_model.safetensors",):
        one, other = load_file(tmp_path / "theirs" / file), load_file(tmp_path / "final/adapter" / file)
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)
    again = load_plain(base)
    add_adapter(again, LoraSettings(adapter=str(tmp_path / "final/adapter")), seed=0)
    torch.testing.assert_close(logits(again), logits(ours), rtol=0, atol=0)

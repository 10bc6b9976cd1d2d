"""Adapters: what is trained, what the reference is, what fits and what does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from grpo_core.errors import RecipeError
from grpo_core.model.load import load_model
from grpo_core.model.lora import add_adapter, as_reference, trainable_parameters
from grpo_core.recipe.schema import LoraSettings, ModelSettings
from tests.core.model.adapters import adapted_model, load_plain, logits, peft_adapter, randomise
from tests.tiny_models import FAMILIES, Family, make_model, make_model_folder
from tests.vl_models import VL_FAMILIES, VlFamily, make_vl_folder


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model_folder(tmp_path_factory.mktemp("base") / "model", "llama")


def trained(model: Any) -> dict[str, int]:
    return {name: weight.numel() for name, weight in model.named_parameters() if weight.requires_grad}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_fresh_adapter_changes_no_output_and_is_all_that_is_trained(tmp_path: Path, family: Family) -> None:
    model = make_model(family)
    before, plain = logits(model), sum(weight.numel() for weight in model.parameters())
    add_adapter(model, LoraSettings(), seed=0)
    torch.testing.assert_close(logits(model), before, rtol=0, atol=0)
    assert all(".lora_" in name for name in trained(model))
    assert sum(weight.numel() for weight in model.parameters()) == plain + sum(trained(model).values())
    counted = trainable_parameters(ModelSettings(path=str(make_model_folder(tmp_path, family))), LoraSettings())
    assert counted == sum(trained(model).values())
    assert not model.training


def test_the_size_of_an_adapter_is_hand_worked() -> None:
    model = make_model("llama", tie_word_embeddings=False)
    add_adapter(model, LoraSettings(rank=3, targets=("q_proj", "down_proj")), seed=0)
    # q_proj is 32 → 32, down_proj 48 → 32; two layers.
    assert sum(trained(model).values()) == 2 * 3 * ((32 + 32) + (48 + 32))
    assert model.model.layers[0].self_attn.q_proj.scaling == {"default": 32 / 3}


def test_all_linear_leaves_the_head_and_the_embeddings_out() -> None:
    names = {name.split(".lora_")[0].rpartition(".")[2] for name in trained(adapted_model("llama"))}
    assert names == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}


@pytest.mark.parametrize("family", VL_FAMILIES)
@pytest.mark.parametrize("targets", [None, ("q_proj", "v_proj")])
def test_a_vision_language_model_has_adapters_in_its_text_layers_unless_the_tower_is_asked_for(
    tmp_path: Path, family: VlFamily, targets: tuple[str, ...] | None
) -> None:
    folder = make_vl_folder(family, tmp_path)
    settings = ModelSettings(path=str(folder))

    def adapted(vision: bool) -> set[str]:
        model = load_model(settings, torch.float32)
        lora = LoraSettings(rank=2, targets=targets, vision=vision)
        add_adapter(model, lora, seed=0)
        assert trainable_parameters(settings, lora) == sum(trained(model).values())
        return {name.split(".lora_")[0] for name in trained(model)}

    text, everywhere = adapted(False), adapted(True)
    assert text == {name for name in everywhere if "vis" not in name and "connector" not in name}
    ends = {name.rpartition(".")[2] for name in text}
    whole = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    assert ends == (whole if targets is None else set(targets))
    tower_has_them = targets is None or family in ("idefics3", "smolvlm")
    assert (text < everywhere) == tower_has_them


def test_a_target_in_the_tower_alone_is_refused_with_the_setting_that_looks_there(tmp_path: Path) -> None:
    model = load_model(ModelSettings(path=str(make_vl_folder("qwen2_vl", tmp_path))), torch.float32)
    with pytest.raises(
        RecipeError, match=r"trainer\.lora\.targets: 'qkv' is in the vision tower alone; trainer\.lora\.v"
    ):
        add_adapter(model, LoraSettings(targets=("q_proj", "qkv")), seed=0)


def test_an_adapter_begins_by_its_seed_and_leaves_the_global_one_alone() -> None:
    def first_weights(seed: int) -> torch.Tensor:
        model = make_model("llama")
        add_adapter(model, LoraSettings(), seed=seed)
        return next(weight for weight in model.parameters() if weight.requires_grad)

    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(first_weights(1), first_weights(1))
    assert torch.equal(torch.rand(3), expected)
    assert not torch.equal(first_weights(1), first_weights(2))


def test_an_adapter_has_the_precision_of_the_model() -> None:
    model = make_model("llama", dtype=torch.bfloat16)
    add_adapter(model, LoraSettings(modules_to_save=("lm_head",)), seed=0)
    assert {weight.dtype for weight in model.parameters()} == {torch.bfloat16}


def test_the_reference_of_a_fresh_adapter_is_the_model_without_it() -> None:
    model = make_model("llama")
    before = logits(model)
    add_adapter(model, LoraSettings(modules_to_save=("lm_head",)), seed=0, with_reference=True)
    randomise(model)
    changed, was_trained = logits(model), trained(model)
    assert not torch.allclose(changed, before)
    with as_reference(model):
        torch.testing.assert_close(logits(model), before, rtol=0, atol=0)
    torch.testing.assert_close(logits(model), changed, rtol=0, atol=0)
    assert trained(model) == was_trained


@pytest.mark.parametrize("modules_to_save", [None, ["lm_head"]])
def test_the_reference_of_an_adapter_to_go_on_with_is_that_adapter(
    base: Path, tmp_path: Path, modules_to_save: list[str] | None
) -> None:
    start = logits(peft_adapter(base, tmp_path / "adapter", modules_to_save=modules_to_save, lora_dropout=0.5))
    model = load_plain(base)
    add_adapter(model, LoraSettings(adapter=str(tmp_path / "adapter")), seed=0, with_reference=True)
    torch.testing.assert_close(logits(model.train()), start, rtol=0, atol=0)  # no dropout
    was_trained = trained(model)
    assert all("reference" not in name for name in was_trained)
    randomise(model, seed=2)
    changed = logits(model)
    assert not torch.allclose(changed, start)
    with as_reference(model):
        torch.testing.assert_close(logits(model), start, rtol=0, atol=0)
    torch.testing.assert_close(logits(model), changed, rtol=0, atol=0)
    assert trained(model) == was_trained


def test_the_policy_comes_back_when_the_reference_fails() -> None:
    model = adapted_model()
    before, was_trained = logits(model), trained(model)
    with pytest.raises(KeyboardInterrupt), as_reference(model):
        raise KeyboardInterrupt
    torch.testing.assert_close(logits(model), before, rtol=0, atol=0)
    assert trained(model) == was_trained


def test_an_adapter_to_go_on_with_is_counted_from_its_config(base: Path, tmp_path: Path) -> None:
    model = peft_adapter(base, tmp_path / "adapter", r=5)
    (tmp_path / "adapter" / "adapter_model.safetensors").unlink()
    lora = LoraSettings(adapter=str(tmp_path / "adapter"))
    assert trainable_parameters(ModelSettings(path=str(base)), lora) == sum(trained(model).values())


def fault(model: Any, **lora: Any) -> str:
    with pytest.raises(RecipeError) as caught:
        add_adapter(model, LoraSettings(**lora), seed=0)
    [problem] = caught.value.problems
    return str(problem)


def test_a_target_that_the_model_lacks_is_named_before_any_weight_is_read(base: Path) -> None:
    text = "trainer.lora.targets: LlamaForCausalLM has no module 'q_porj'; did you mean 'q_proj'?"
    assert fault(make_model("llama"), targets=("v_proj", "q_porj")) == text
    with pytest.raises(RecipeError, match="has no module 'q_porj'"):
        trainable_parameters(ModelSettings(path=str(base)), LoraSettings(targets=("q_porj",)))
    assert "trainer.lora.modules_to_save: LlamaForCausalLM has no module 'hed'" in fault(
        make_model("llama"), modules_to_save=("hed",)
    )


@pytest.mark.parametrize("lora", [{"targets": ("q_proj", "embed_tokens")}, {"modules_to_save": ("lm_head",)}])
def test_one_of_two_tied_weights_cannot_be_trained_alone(lora: dict[str, Any]) -> None:
    assert "one weight is both input embedding and head" in fault(make_model("qwen3"), **lora)


def test_a_module_that_holds_no_matrix_is_no_target() -> None:
    assert "trainer.lora.targets: Target module" in fault(make_model("llama"), targets=("mlp",))


BAD_CONFIGS: dict[str, dict[str, Any]] = {
    "changes weights of the model itself": {"bias": "all"},
    "an adapter of the kind of Linear on Linear is not plain LoRA": {"use_dora": True},
    "LlamaForCausalLM has no module 'c_attn'": {"target_modules": ["c_attn"]},
}


@pytest.mark.parametrize("message", BAD_CONFIGS)
def test_an_adapter_that_is_not_plain_lora_of_this_model_is_refused(base: Path, tmp_path: Path, message: str) -> None:
    peft_adapter(base, tmp_path)
    edit_config(tmp_path, **BAD_CONFIGS[message])
    assert message in fault(load_plain(base), adapter=str(tmp_path))


def edit_config(folder: Path, **changes: Any) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_an_adapter_of_another_kind_is_refused(base: Path, tmp_path: Path) -> None:
    import peft

    peft.IA3Config(task_type="CAUSAL_LM").save_pretrained(tmp_path)
    assert "is no LoRA adapter but one of the kind IA3" in fault(load_plain(base), adapter=str(tmp_path))


def test_a_folder_without_an_adapter_is_named(base: Path, tmp_path: Path) -> None:
    assert f"trainer.lora.adapter: {tmp_path} holds no adapter in peft's layout" in fault(
        load_plain(base), adapter=str(tmp_path)
    )


def test_an_adapter_without_weights_is_named(base: Path, tmp_path: Path) -> None:
    peft_adapter(base, tmp_path)
    (tmp_path / "adapter_model.safetensors").write_bytes(b"abc")
    assert f"the weights of {tmp_path} cannot be read" in fault(load_plain(base), adapter=str(tmp_path))


def test_an_adapter_of_another_size_or_with_other_weights_is_refused(base: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    peft_adapter(base, tmp_path)
    file = tmp_path / "adapter_model.safetensors"
    weights = load_file(file)
    edit_config(tmp_path, r=7)
    assert "does not fit LlamaForCausalLM: Error(s) in loading state_dict" in fault(
        load_plain(base), adapter=str(tmp_path)
    )
    edit_config(tmp_path, r=4)
    first, *others = sorted(weights)
    save_file({name: weights[name] for name in others}, file)
    assert "it lacks model.layers.0.self_attn.q_proj.lora_A.default.weight" in fault(
        load_plain(base), adapter=str(tmp_path)
    )
    save_file({**weights, "stranger": weights[first].clone()}, file)
    assert "it has stranger, which is none of its weights" in fault(load_plain(base), adapter=str(tmp_path))


def test_a_rank_beyond_every_layer_is_refused(tmp_path: Path) -> None:
    model = ModelSettings(path=str(make_model_folder(tmp_path / "m")))
    assert trainable_parameters(model, LoraSettings(rank=32)) > 0
    with pytest.raises(
        RecipeError, match=r"trainer\.lora\.rank: 33 is more than 32, the smaller side of the widest layer"
    ):
        trainable_parameters(model, LoraSettings(rank=33))

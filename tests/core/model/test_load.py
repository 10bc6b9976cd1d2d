"""Loading models: complete, without dropout, without the network; and what their config alone says."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from grpo_core.errors import RecipeError
from grpo_core.model.json_files import generation_warning
from grpo_core.model.load import (
    context_length,
    count_parameters,
    empty_model,
    load_model,
    model_config,
    require_sound_weights,
    require_weights,
)
from grpo_core.recipe.schema import ModelSettings
from tests.tiny_models import FAMILIES, SHAPE, Family, make_model_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_model_folder(tmp_path / "model")


def settings(path: Path | str) -> ModelSettings:
    return ModelSettings(path=str(path))


def edit_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_loads_in_the_asked_dtype_and_is_counted_from_its_config(tmp_path: Path, family: Family) -> None:
    model_settings = settings(make_model_folder(tmp_path / "model", family))
    model = load_model(model_settings, torch.bfloat16)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}
    assert not model.training
    assert count_parameters(model_settings) == sum(parameter.numel() for parameter in model.parameters())
    assert context_length(model_settings) == SHAPE["max_position_embeddings"]


def test_a_config_that_names_no_context_length_gives_none(tmp_path: Path) -> None:
    transformers.BloomForCausalLM(
        transformers.BloomConfig(vocab_size=64, hidden_size=16, n_layer=1, n_head=2)
    ).save_pretrained(tmp_path)
    assert context_length(settings(tmp_path)) is None


def test_a_folder_is_read_without_the_network(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    load_model(settings(folder), torch.float32)


def test_loading_draws_nothing_on_the_console(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    load_model(settings(folder), torch.float32)
    assert capfd.readouterr() == ("", "")


def test_dropout_is_off_in_modules_attention_and_config(tmp_path: Path) -> None:
    config = transformers.GPT2Config(vocab_size=64, n_embd=16, n_layer=1, n_head=2, n_positions=32)
    assert config.attn_pdrop == config.resid_pdrop == config.embd_pdrop == 0.1
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "gpt2")
    gpt2 = load_model(settings(tmp_path / "gpt2"), torch.float32)
    llama = load_model(
        settings(make_model_folder(tmp_path / "llama", "llama", attention_dropout=0.25)),
        torch.float32,
        attention="eager",
    )
    assert gpt2.config.attn_pdrop == gpt2.config.resid_pdrop == gpt2.config.embd_pdrop == 0.0
    assert llama.config.attention_dropout == llama.model.layers[0].self_attn.attention_dropout == 0.0
    ids_BT = torch.arange(12).reshape(1, 12)
    for model in (gpt2, llama):
        torch.testing.assert_close(model.train()(ids_BT).logits, model.eval()(ids_BT).logits, rtol=0, atol=0)


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(RecipeError, match=r"model\.path: \./nowhere: there is no such folder"):
        model_config(settings("./nowhere"))


def test_a_file_in_place_of_a_folder_is_named(folder: Path) -> None:
    with pytest.raises(RecipeError, match="this is a file; give the folder"):
        model_config(settings(folder / "config.json"))


def test_a_folder_without_a_config_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="the folder is empty"):
        model_config(settings(tmp_path))


def test_a_config_that_cannot_be_read_is_named(folder: Path) -> None:
    (folder / "config.json").write_text("{")
    with pytest.raises(RecipeError, match=r"its config\.json cannot be read: .*not a valid JSON"):
        model_config(settings(folder))


def test_an_unknown_model_type_is_named(folder: Path) -> None:
    edit_config(folder, model_type="nonesuch")
    with pytest.raises(RecipeError, match=r"its config\.json cannot be read: .*nonesuch"):
        model_config(settings(folder))


def test_a_model_type_without_causal_language_models_is_refused(tmp_path: Path) -> None:
    transformers.ViTConfig().save_pretrained(tmp_path)
    with pytest.raises(RecipeError, match="a model of type 'vit' is not a causal language model"):
        model_config(settings(tmp_path))


def test_a_reward_model_is_not_taken_for_a_policy(folder: Path) -> None:
    edit_config(folder, architectures=["Qwen3ForSequenceClassification"])
    with pytest.raises(RecipeError, match="it holds a Qwen3ForSequenceClassification, not a causal language model"):
        model_config(settings(folder))


def test_a_folder_without_weights_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(RecipeError, match=r"the weights cannot be loaded: .*model\.safetensors"):
        load_model(settings(folder), torch.float32)


def test_a_truncated_weight_file_is_refused(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(RecipeError, match="the weights cannot be loaded: "):
        load_model(settings(folder), torch.float32)


def test_weights_that_the_files_lack_are_listed_instead_of_left_random(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    lacking = {name: tensor for name, tensor in weights.items() if "mlp" not in name}
    save_file(lacking, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        RecipeError, match=r"its files lack 6 weights of the model: model\.layers\.0\.mlp\.down_proj.*, …"
    ):
        load_model(settings(folder), torch.float32)


def test_weights_of_another_shape_are_refused(folder: Path) -> None:
    edit_config(folder, vocab_size=300)
    shapes = r"model\.embed_tokens\.weight has the shape \[272, 32\] in its files and \[300, 32\] by its config"
    with pytest.raises(RecipeError, match=shapes):
        load_model(settings(folder), torch.float32)


@pytest.mark.parametrize("inner", ["", "adapter"])
def test_an_adapter_in_place_of_a_model_says_where_it_belongs(tmp_path: Path, inner: str) -> None:
    (tmp_path / inner).mkdir(exist_ok=True)
    (tmp_path / inner / "adapter_config.json").write_text("{}")
    with pytest.raises(RecipeError, match=rf"holds a LoRA adapter and no model: .*lora\.adapter={tmp_path / inner}"):
        model_config(settings(tmp_path))


def test_a_folder_without_weights_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    folder = make_model_folder(tmp_path / "model")
    require_weights(ModelSettings(path=str(folder)))
    (folder / "model.safetensors").unlink()
    with pytest.raises(RecipeError, match=r"the folder has no weights: no file \*\.safetensors or pytorch_model"):
        require_weights(ModelSettings(path=str(folder)))


def broken_by(folder: Path, **changes: object) -> str:
    edit_config(folder, **changes)
    with pytest.raises(RecipeError) as caught:
        empty_model(settings(folder))
    return caught.value.message.partition(f"{folder}: ")[2]


@pytest.mark.parametrize("name", ["vocab_size", "hidden_size", "num_attention_heads"])
@pytest.mark.parametrize("size", [-1, 0, 10**9])
def test_a_size_that_no_model_has_is_named_with_its_file(folder: Path, name: str, size: int) -> None:
    assert broken_by(folder, **{name: size}).startswith(
        f"its config.json has the {name} {size}; a model has a whole nu"
    )


def test_a_model_of_a_billion_layers_is_not_begun(folder: Path) -> None:
    said = broken_by(folder, num_hidden_layers=10**9, layer_types=None)
    assert said.startswith("its config.json has the num_hidden_layers 1000000000; a model has a whole number from 1 to")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"num_key_value_heads": 3},
            "its config.json has 4 num_attention_heads, which 3 num_key_value_heads do not div",
        ),
        ({"hidden_size": "big"}, "its config.json cannot be read: Validation error for field 'hidden_size'"),
        ({"intermediate_size": -4}, "no model can be made of the sizes in its config.json: "),
        ({"hidden_act": "nope"}, "no model can be made of the sizes in its config.json: 'nope'"),
    ],
)
def test_a_config_that_no_model_can_be_made_of_is_an_error_of_it(
    folder: Path, changes: dict[str, object], said: str
) -> None:
    assert broken_by(folder, **changes).startswith(said)


def weights_said(folder: Path) -> str:
    with pytest.raises(RecipeError) as caught:
        require_sound_weights(settings(folder))
    return caught.value.message.partition(f"{folder}: ")[2]


def test_sound_weights_are_found_sound_in_one_file_and_in_several(folder: Path) -> None:
    require_sound_weights(settings(folder))
    load_model(settings(folder), torch.float32).save_pretrained(folder, max_shard_size="40KB")
    (folder / "model.safetensors").unlink()
    require_sound_weights(settings(folder))
    (folder / "model-00001-of-00003.safetensors").unlink()
    assert weights_said(folder).startswith("model-00001-of-00003.safetensors cannot be read: No such file")


def test_weights_that_are_whole_numbers_are_refused(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    name = "model.layers.0.self_attn.q_proj.weight"
    save_file({**weights, name: weights[name].to(torch.int8)}, folder / "model.safetensors", metadata={"format": "pt"})
    assert weights_said(folder).startswith(f"model.safetensors: {name} is of the type I8: quantised weights cannot be")


def test_weights_of_another_shape_than_the_configs_are_found_in_their_header(folder: Path) -> None:
    edit_config(folder, vocab_size=300)
    shapes = "[272, 32] in its files and [300, 32] by its config.json"
    assert weights_said(folder).startswith(f"model.safetensors: model.embed_tokens.weight has the shape {shapes}")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: data[:-100], "model.safetensors is damaged: it has "),
        (lambda data: b"", "model.safetensors is no safetensors file, or is cut off: it has 0 bytes"),
        (
            lambda data: b"whoever reads this fails",
            "model.safetensors is no safetensors file, or is cut off: it has 24",
        ),
        (lambda data: data[:8] + b"[" + data[9:], "model.safetensors is no safetensors file: its header is damaged"),
    ],
)
def test_a_damaged_file_of_weights_is_found_without_loading_it(
    folder: Path, damage: Callable[[bytes], bytes], said: str
) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(damage(file.read_bytes()))
    assert weights_said(folder).startswith(said)


def test_settings_of_sampling_in_a_generation_config_are_kept_so_that_it_can_be_written(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "generation_config.json").write_text('{"temperature": 0.6, "top_p": 0.9, "eos_token_id": 258}')
    assert "says do_sample: true" in str(generation_warning(settings(folder)))
    load_model(settings(folder), torch.float32).save_pretrained(tmp_path / "out")
    kept = json.loads((tmp_path / "out/generation_config.json").read_text())
    assert (kept["temperature"], kept["top_p"], kept["do_sample"]) == (0.6, 0.9, True)
    assert generation_warning(settings(tmp_path / "out")) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "its generation_config.json cannot be read: it is not a valid JSON file: Expecting"),
        ("[]", "its generation_config.json holds a list and no object"),
        ('{"pad_token_id": -7}', "its generation_config.json is not sound, and could not be written with the model: "),
    ],
)
def test_a_generation_config_that_is_none_is_named(folder: Path, text: str, said: str) -> None:
    (folder / "generation_config.json").write_text(text)
    with pytest.raises(RecipeError) as caught:
        generation_warning(settings(folder))
    assert caught.value.message.partition(f"{folder}: ")[2].startswith(said)

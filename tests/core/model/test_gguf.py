"""GGUF files: the weights they stand for, tokenizer, end tokens, exports, and what is no GGUF file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

from grpo_core.errors import RecipeError
from grpo_core.model.load import context_length, count_parameters, load_model, model_config
from grpo_core.model.tokenizer import end_token_ids, load_tokenizer, render_prompt, template_warning
from grpo_core.recipe.schema import ModelSettings
from grpo_core.types import Message
from tests.core.model.adapters import load_plain, logits
from tests.tiny_gguf import CONTEXT, END_ID, PAD_ID, START_ID, make_gguf


def settings(path: Path) -> ModelSettings:
    return ModelSettings(path=str(path))


@pytest.mark.parametrize("quantisation", ["F32", "Q8_0", "Q4_1"])
@pytest.mark.parametrize("tied", [False, True])
def test_weights_are_dequantised_exactly(
    tmp_path: Path, quantisation: str, tied: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    expected = make_gguf(tmp_path / "tiny.gguf", quantisation=quantisation, tied=tied)  # type: ignore[arg-type]
    model = load_model(settings(tmp_path / "tiny.gguf"), torch.float32)
    found = dict(model.named_parameters())
    assert found.keys() == expected.keys()
    for name, weight in expected.items():
        torch.testing.assert_close(found[name].detach(), weight, rtol=0, atol=0, msg=name)
    assert not model.training
    assert capfd.readouterr() == ("", "")


def test_a_file_answers_for_its_config(tmp_path: Path) -> None:
    weights = make_gguf(tmp_path / "tiny.gguf")
    model = settings(tmp_path / "tiny.gguf")
    assert context_length(model) == CONTEXT
    assert count_parameters(model) == sum(weight.numel() for weight in weights.values())
    assert {weight.dtype for weight in load_model(model, torch.bfloat16).parameters()} == {torch.bfloat16}
    config = model_config(model)
    config.vocab_size = 1
    assert model_config(model).vocab_size == 288  # what a caller does to a config is the caller's


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    import os

    make_gguf(tmp_path / "tiny.gguf")
    model = settings(tmp_path / "tiny.gguf")
    assert end_token_ids(load_tokenizer(model), model) == {END_ID}
    make_gguf(tmp_path / "tiny.gguf", chat_template=None, turn_end=START_ID)
    os.utime(tmp_path / "tiny.gguf", ns=(1, 1))
    tokenizer = load_tokenizer(model)
    assert template_warning(tokenizer) is not None
    assert end_token_ids(tokenizer, model) == {END_ID, START_ID}


def test_the_tokenizer_and_its_template_come_with_the_file(tmp_path: Path) -> None:
    make_gguf(tmp_path / "tiny.gguf")
    tokenizer = load_tokenizer(settings(tmp_path / "tiny.gguf"))
    rendered = render_prompt([Message(role="user", content="he says: 3 + 4 é")], tokenizer)
    assert rendered.text == "<|im_start|>user\nhe says: 3 + 4 é<|im_end|>\n<|im_start|>assistant\n"
    assert rendered.token_ids.count(START_ID) == 2
    assert 256 in rendered.token_ids
    assert tokenizer.decode(rendered.token_ids) == rendered.text
    assert tokenizer.pad_token_id == PAD_ID


def test_a_missing_pad_token_becomes_the_end_token(tmp_path: Path) -> None:
    make_gguf(tmp_path / "tiny.gguf", pad=False)
    assert load_tokenizer(settings(tmp_path / "tiny.gguf")).pad_token_id == END_ID


@pytest.mark.parametrize("tied", [False, True])
def test_what_was_a_file_is_saved_in_hugging_face_layout(tmp_path: Path, tied: bool) -> None:
    make_gguf(tmp_path / "tiny.gguf", quantisation="Q8_0", tied=tied)
    model = load_model(settings(tmp_path / "tiny.gguf"), torch.float32)
    model.save_pretrained(tmp_path / "out")
    load_tokenizer(settings(tmp_path / "tiny.gguf")).save_pretrained(tmp_path / "out")
    again = load_plain(tmp_path / "out")
    torch.testing.assert_close(logits(again), logits(model), rtol=0, atol=0)
    assert again.config.tie_word_embeddings == tied
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert tokenizer.decode(tokenizer("he: 3 * 4")["input_ids"]) == "he: 3 * 4"
    assert tokenizer.chat_template


def test_a_tokenizer_may_be_that_of_a_file(tmp_path: Path) -> None:
    make_gguf(tmp_path / "tiny.gguf")
    model = ModelSettings(path="somebody/model", tokenizer=str(tmp_path / "tiny.gguf"))
    assert load_tokenizer(model).eos_token_id == END_ID


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(RecipeError, match=r"model\.path: /nowhere/m\.gguf: there is no such file"):
        model_config(ModelSettings(path="/nowhere/m.gguf"))
    with pytest.raises(RecipeError, match=r"model\.tokenizer: /nowhere/m\.gguf: there is no such file"):
        load_tokenizer(ModelSettings(path="a/b", tokenizer="/nowhere/m.gguf"))


@pytest.mark.parametrize("size", [0, 3, 100, 2000])
def test_a_damaged_file_is_named(tmp_path: Path, size: int) -> None:
    make_gguf(tmp_path / "tiny.gguf")
    path = tmp_path / "tiny.gguf"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(RecipeError, match=r"tiny\.gguf: it cannot be read as a GGUF file"):
        model_config(settings(path))
    with pytest.raises(RecipeError, match=r"tiny\.gguf: no tokenizer can be loaded from the file"):
        load_tokenizer(settings(path))


def test_a_file_without_its_last_weights_is_named(tmp_path: Path) -> None:
    make_gguf(tmp_path / "tiny.gguf")
    path = tmp_path / "tiny.gguf"
    path.write_bytes(path.read_bytes()[:-20000])
    with pytest.raises(RecipeError, match=r"tiny\.gguf: (it cannot be read as a GGUF|the weights cannot be loaded)"):
        load_model(settings(path), torch.float32)


def test_a_file_of_another_kind_says_what_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "model.bin").touch()
    with pytest.raises(RecipeError, match=r"this is a file; give the folder .* or a \.gguf file"):
        model_config(settings(tmp_path / "model.bin"))

"""Where completions end: what an exported model names, and what is said at launch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grpo_core.backends import ModelSettings
from grpo_core.model.ends import end_note, name_ends, never_ends_warning
from grpo_core.model.load import load_model
from grpo_core.model.tokenizer import load_tokenizer, template_warning
from tests.tiny_models import END, END_ID, PAD_ID, make_model_folder, make_tokenizer


def named(folder: Path) -> tuple[Any, Any]:
    """Config and generation config of the folder's model once it has been named its ends."""
    import torch

    settings = ModelSettings(path=str(folder))
    model = load_model(settings, torch.float32)
    name_ends(model, load_tokenizer(settings), settings)
    return model.config, model.generation_config


def note(folder: Path) -> str | None:
    settings = ModelSettings(path=str(folder))
    return end_note(load_tokenizer(settings), settings)


def test_what_only_one_place_names_is_named_everywhere_the_tokenizers_first(tmp_path: Path) -> None:
    folder = make_model_folder(tmp_path / "model", end_ids=(7, 9), eos_token_id=3)
    for config in named(folder):
        assert config.eos_token_id == [END_ID, 3, 7, 9]


def test_places_that_name_all_of_them_stay_as_they_are(tmp_path: Path) -> None:
    config, generation = named(make_model_folder(tmp_path / "model", end_ids=(9, END_ID), eos_token_id=END_ID))
    assert generation.eos_token_id == [9, END_ID]
    assert config.eos_token_id == [END_ID, 9]
    config, generation = named(make_model_folder(tmp_path / "plain"))
    assert config.eos_token_id == generation.eos_token_id == END_ID


def test_a_class_has_no_end_token_of_its_own_that_the_files_do_not_name(tmp_path: Path) -> None:
    """Llama's is 2 where config.json says nothing."""
    folder = make_model_folder(tmp_path / "model", family="llama", end_ids=(), tokenizer={"end": None})
    path = folder / "config.json"
    content = json.loads(path.read_text())
    del content["eos_token_id"]
    path.write_text(json.dumps(content))
    config, generation = named(folder)
    assert config.eos_token_id is None
    assert generation.eos_token_id is None


def test_padding_is_the_tokenizers_where_the_model_can_embed_it(tmp_path: Path) -> None:
    config, generation = named(make_model_folder(tmp_path / "model", pad_token_id=5))
    assert config.pad_token_id == generation.pad_token_id == PAD_ID
    beyond = make_model_folder(tmp_path / "beyond", vocab_size=259, pad_token_id=5, tokenizer={"pad": "<|pad|>"})
    config, generation = named(beyond)
    assert config.pad_token_id == 5


def test_an_end_token_that_pads_is_no_padding_to_the_embedding(tmp_path: Path) -> None:
    config, generation = named(make_model_folder(tmp_path / "model", pad_token_id=None, tokenizer={"pad": None}))
    assert config.pad_token_id is None
    assert generation.pad_token_id == END_ID


@pytest.mark.parametrize(
    ("end_ids", "eos_token_id", "expected"),
    [
        ((END_ID,), END_ID, None),
        ((END_ID, 65), END_ID, None),  # a chat model with two, as usual
        ((65, END_ID), 65, None),
        ((), END_ID, None),
        ((65,), END_ID, "generation_config.json 'b' (65); config.json '<|im_end|>' (258))"),
        ((), 65, "generation_config.json none; config.json 'b' (65))"),
        ((END_ID,), 65, "generation_config.json '<|im_end|>' (258); config.json 'b' (65))"),
    ],
)
def test_files_that_disagree_are_a_note(
    tmp_path: Path, end_ids: tuple[int, ...], eos_token_id: int, expected: str | None
) -> None:
    said = note(make_model_folder(tmp_path / "model", end_ids=end_ids, eos_token_id=eos_token_id))
    assert (said is None) == (expected is None)
    if said is not None and expected is not None:
        assert said.startswith("the model's files name different end tokens (the tokenizer '<|im_end|>' (258); ")
        assert expected in said


@pytest.mark.parametrize(
    ("model", "stop", "ends"),
    [
        ({}, (), True),
        ({"end_ids": (), "eos_token_id": None, "tokenizer": {"end": None}}, (), False),
        ({"end_ids": (), "eos_token_id": None, "tokenizer": {"end": None, "pad": None}}, (), False),
        ({"end_ids": (), "eos_token_id": None, "tokenizer": {"end": None}}, ("\n\n",), True),
        ({"end_ids": (65,), "eos_token_id": None, "tokenizer": {"end": None}}, (), True),
        ({"end_ids": (), "eos_token_id": None, "vocab_size": 259, "tokenizer": {"end": "<|e|>"}}, (), False),
    ],
)
def test_a_warning_says_that_nothing_can_end_a_completion(
    tmp_path: Path, model: dict[str, Any], stop: tuple[str, ...], ends: bool
) -> None:
    settings = ModelSettings(path=str(make_model_folder(tmp_path / "model", **model)))
    assert (never_ends_warning(load_tokenizer(settings), settings, stop, 8) is None) == ends


@pytest.mark.parametrize(
    ("template", "is_warned"),
    [
        ("{{ messages }}", True),
        ("{{ messages | tojson }}", True),
        ("{% for m in messages %}{{ m }}{% endfor %}", True),
        ("{% for m in messages %}{{ m.role }}: {{ m.content }}" + END + "{% endfor %}", False),
        ("{% for m in messages %}{{ m.content | tojson }}{% endfor %}", False),
        ("{% if messages[0].role != 'system' %}{{ raise_exception('no') }}{% endif %}", False),
    ],
)
def test_a_template_that_writes_messages_as_data_is_said(template: str, is_warned: bool) -> None:
    warning = template_warning(make_tokenizer(template))
    assert ("writes messages as data" in (warning or "")) == is_warned

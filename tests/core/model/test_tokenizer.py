"""The tokenizer: loaded offline, one BOS at most, every end token, and a template for those that have none."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from tokenizers.processors import TemplateProcessing

from grpo_core.errors import DataError, RecipeError
from grpo_core.model.tokenizer import (
    FALLBACK_TEMPLATE,
    encode,
    end_token_ids,
    load_tokenizer,
    render_prompt,
    template_warning,
)
from grpo_core.recipe.schema import ModelSettings
from grpo_core.types import Message
from tests.tiny_models import CHAT_TEMPLATE, END, END_ID, PAD_ID, START_ID, make_model, make_tokenizer

QUESTION = (Message(role="user", content="6*7?"),)
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for message in messages %}{{ message['content'] }}{% endfor %}"
)


def save(path: Path, tokenizer: Any) -> ModelSettings:
    """A model folder without weights."""
    tokenizer.save_pretrained(path)
    (path / "config.json").write_text(json.dumps(make_model().config.to_dict()))
    return ModelSettings(path=str(path))


@pytest.fixture
def model(tmp_path: Path) -> ModelSettings:
    return save(tmp_path / "model", make_tokenizer())


def with_bos(tokenizer: Any) -> Any:
    """Make a tokenizer that begins every text with a BOS token, as Llama's does."""
    tokenizer.bos_token = "<|im_start|>"
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", START_ID)]
    )
    return tokenizer


def test_a_folder_is_loaded_without_any_network(model: ModelSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: object, **__: object) -> None:
        raise AssertionError("the network was tried")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    monkeypatch.setattr(socket.socket, "connect", no_network)
    tokenizer = load_tokenizer(model)
    assert render_prompt(QUESTION, tokenizer).text == "<|im_start|>user\n6*7?<|im_end|>\n<|im_start|>assistant\n"
    assert template_warning(tokenizer) is None


def test_the_tokens_of_a_prompt_are_those_of_its_text(model: ModelSettings) -> None:
    tokenizer = load_tokenizer(model)
    rendered = render_prompt(QUESTION, tokenizer)
    assert rendered.token_ids[0] == START_ID
    assert rendered.token_ids.count(END_ID) == 1
    assert tokenizer.decode(rendered.token_ids) == rendered.text
    assert encode([], tokenizer) == []


def test_a_think_tag_that_the_template_writes_belongs_to_the_prompt(model: ModelSettings) -> None:
    template = CHAT_TEMPLATE.replace("assistant\n", "assistant\n<think>\n")
    tokenizer = load_tokenizer(model.model_copy(update={"chat_template": template}))
    assert render_prompt(QUESTION, tokenizer).text.endswith("<|im_start|>assistant\n<think>\n")


def test_the_template_of_the_settings_wins(model: ModelSettings) -> None:
    settings = model.model_copy(update={"chat_template": "Q: {{ messages[0]['content'] }}\nA:"})
    assert render_prompt(QUESTION, load_tokenizer(settings)).text == "Q: 6*7?\nA:"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{% for message in messages %}", "model.chat_template: the chat template cannot write"),
        ("prompts/chat_form", "model.chat_template: 'prompts/chat_form' is not a template"),
    ],
)
def test_a_template_that_cannot_work_is_found_when_it_is_loaded(
    model: ModelSettings, template: str, message: str
) -> None:
    with pytest.raises(RecipeError, match=message):
        load_tokenizer(model.model_copy(update={"chat_template": template}))


def test_a_conversation_that_the_template_refuses_is_an_error_with_its_reason(model: ModelSettings) -> None:
    tokenizer = load_tokenizer(model.model_copy(update={"chat_template": NO_SYSTEM}))
    with pytest.raises(DataError, match=r"cannot write this conversation \(system, user\): System role not supported"):
        render_prompt((Message(role="system", content="s"), *QUESTION), tokenizer)


def test_a_tokenizer_without_template_writes_roles_as_headings_and_says_so(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(save(tmp_path, make_tokenizer(chat_template=False)))
    conversation = (Message(role="system", content="Be brief."), *QUESTION)
    assert render_prompt(conversation, tokenizer).text == (
        "### System:\nBe brief.\n\n### User:\n6*7?\n\n### Assistant:\n"
    )
    warning = template_warning(tokenizer)
    assert warning is not None
    assert "no chat template" in warning
    assert "model.chat_template" in warning


def test_the_headings_are_saved_with_the_tokenizer_so_a_trained_model_is_asked_the_same_way(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(save(tmp_path / "in", make_tokenizer(chat_template=False)))
    tokenizer.save_pretrained(tmp_path / "out")
    again = load_tokenizer(save(tmp_path / "out", tokenizer))
    assert again.chat_template == FALLBACK_TEMPLATE
    assert template_warning(again) is not None


def test_there_is_one_bos_token_whether_the_template_writes_it_or_the_headings_do(tmp_path: Path) -> None:
    plain = load_tokenizer(save(tmp_path / "plain", with_bos(make_tokenizer(chat_template=False))))
    assert render_prompt(QUESTION, plain).token_ids.count(START_ID) == 1
    assert render_prompt(QUESTION, plain).token_ids[0] == START_ID
    assert template_warning(plain) is not None
    written = with_bos(make_tokenizer())
    written.chat_template = "{{ bos_token }}{{ messages[0]['content'] }}"
    own = load_tokenizer(save(tmp_path / "own", written))
    assert render_prompt(QUESTION, own).token_ids.count(START_ID) == 1


def test_a_missing_pad_token_becomes_the_end_token_and_the_vocabulary_stays(tmp_path: Path) -> None:
    without = make_tokenizer()
    without.pad_token = None
    size = len(without)
    tokenizer = load_tokenizer(save(tmp_path, without))
    assert (tokenizer.pad_token, tokenizer.pad_token_id, len(tokenizer)) == (END, END_ID, size)


def test_a_pad_token_is_kept(model: ModelSettings) -> None:
    assert load_tokenizer(model).pad_token_id == PAD_ID


def test_every_end_token_that_the_model_names_counts(tmp_path: Path) -> None:
    model = save(tmp_path, make_tokenizer())
    tokenizer = load_tokenizer(model)
    assert end_token_ids(tokenizer, model) == {END_ID}
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [END_ID, PAD_ID]}))
    assert end_token_ids(tokenizer, model) == {END_ID, PAD_ID}
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": 7, "text_config": {"eos_token_id": [8]}}))
    assert end_token_ids(tokenizer, model) == {END_ID, PAD_ID, 7, 8}


def test_a_model_without_end_tokens_has_none(tmp_path: Path) -> None:
    without = make_tokenizer()
    without.eos_token = None
    model = save(tmp_path, without)
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": None}))
    assert end_token_ids(without, model) == frozenset()


def test_a_tokenizer_of_another_folder_can_be_used(tmp_path: Path) -> None:
    save(tmp_path / "model", make_tokenizer())
    other = make_tokenizer()
    other.chat_template = "other: {{ messages[0]['content'] }}"
    save(tmp_path / "other", other)
    settings = ModelSettings(path=str(tmp_path / "model"), tokenizer=str(tmp_path / "other"))
    assert render_prompt(QUESTION, load_tokenizer(settings)).text == "other: 6*7?"


def test_a_folder_without_tokenizer_is_an_error_and_not_an_empty_vocabulary(model: ModelSettings) -> None:
    for file in Path(model.path).glob("tokenizer*"):
        file.unlink()
    with pytest.raises(RecipeError, match=r"model\.path: .*: holds no tokenizer"):
        load_tokenizer(model)


def test_a_damaged_tokenizer_is_an_error(model: ModelSettings) -> None:
    (Path(model.path) / "tokenizer.json").write_text("{}")
    with pytest.raises(RecipeError, match="no tokenizer can be loaded from the folder"):
        load_tokenizer(model)


def test_a_path_that_is_no_folder_is_an_error(tmp_path: Path, model: ModelSettings) -> None:
    with pytest.raises(RecipeError, match=r"model\.path: .*gone: there is no such folder"):
        load_tokenizer(ModelSettings(path=str(tmp_path / "gone")))
    with pytest.raises(RecipeError, match=r"model\.tokenizer: .*: this is a file"):
        load_tokenizer(model.model_copy(update={"tokenizer": str(Path(model.path) / "config.json")}))


def test_an_id_that_the_hub_does_not_give_says_how_to_write_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(RecipeError, match=r"no tokenizer can be loaded from the hub \(a folder would be written \./"):
        load_tokenizer(ModelSettings(path="nobody/nothing"))


def test_options_of_the_template_must_be_variables_that_it_reads(model: ModelSettings) -> None:
    template = "{{ messages[0]['content'] }}{% if enable_thinking %}<think>{% endif %}"
    settings = model.model_copy(update={"chat_template": template})
    load_tokenizer(settings.model_copy(update={"chat_template_options": {"enable_thinking": False}}))
    with pytest.raises(RecipeError, match=r"model\.chat_template_options\.enable_thinkin: the chat template has no"):
        load_tokenizer(settings.model_copy(update={"chat_template_options": {"enable_thinkin": False}}))
    with pytest.raises(RecipeError, match=r"model\.chat_template_options: 'tokenize' is not the chat template's"):
        load_tokenizer(settings.model_copy(update={"chat_template_options": {"tokenize": False}}))


LOOPS = "".join(f"{{% for {name} in range(99999) %}}" for name in "abc") + "{% endfor %}" * 3
ENDLESS_FOR_SOME = (
    f"{{% for m in messages %}}{{% if m.role == 'system' %}}{LOOPS}{{% endif %}}{{{{ m.content }}}}{{% endfor %}}"
)
RECURSIVE = "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}"


def test_a_template_without_an_end_is_refused_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grpo_core.model.tokenizer.RENDERING_LIMIT_S", 0.5)
    settings = save(tmp_path, make_tokenizer(LOOPS))
    for given, path in (
        (settings, "model.path"),
        (settings.model_copy(update={"chat_template": LOOPS}), "model.chat_"),
    ):
        with pytest.raises(
            RecipeError, match=f"{path}.*the chat template cannot write.*it does not end: 0.5 s were not"
        ):
            load_tokenizer(given)


def test_a_template_without_an_end_for_some_conversations_names_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grpo_core.model.tokenizer.RENDERING_LIMIT_S", 0.5)
    tokenizer = load_tokenizer(save(tmp_path, make_tokenizer(ENDLESS_FOR_SOME)))
    assert render_prompt(QUESTION, tokenizer).text == "6*7?"
    with pytest.raises(
        DataError, match=r"conversation \(system, user\): it does not end: 0.5 s were not enough"
    ) as caught:
        render_prompt((Message(role="system", content="s"), *QUESTION), tokenizer)
    assert caught.value.hint == "Look for a loop in it; see model.chat_template."


def test_a_template_that_calls_itself_without_an_end_is_refused(tmp_path: Path) -> None:
    settings = save(tmp_path, make_tokenizer()).model_copy(update={"chat_template": RECURSIVE})
    with pytest.raises(RecipeError, match=r"model.chat_template: the chat template cannot write .* recursion"):
        load_tokenizer(settings)


@pytest.mark.parametrize("template", [" \n", "Answer!", "{{ bos_token }}"])
def test_a_template_that_writes_every_prompt_alike_is_refused(tmp_path: Path, template: str) -> None:
    with pytest.raises(RecipeError, match=r"model.path: .* its chat template writes '.*' whatever the user says; set"):
        load_tokenizer(save(tmp_path, make_tokenizer(template)))


@pytest.mark.parametrize("template", ["", " ", "Answer!"])
def test_a_template_setting_that_writes_every_prompt_alike_is_refused(tmp_path: Path, template: str) -> None:
    settings = save(tmp_path, make_tokenizer()).model_copy(update={"chat_template": template})
    with pytest.raises(
        RecipeError, match=r"model.chat_template: .* is not a template: what it writes does not contain"
    ):
        load_tokenizer(settings)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
def test_a_broken_file_of_a_tokenizer_is_named(tmp_path: Path, name: str) -> None:
    settings = save(tmp_path, make_tokenizer())
    (tmp_path / name).write_text('{"a": ')
    with pytest.raises(RecipeError, match=f"no tokenizer can be loaded from the folder: {name} is no JSON: Expecting"):
        load_tokenizer(settings)


def test_a_template_that_fills_the_memory_is_refused_before_it_writes(model: ModelSettings) -> None:
    with pytest.raises(
        RecipeError, match=r"model\.chat_template: the template: the chat template cannot be used: it takes"
    ):
        load_tokenizer(model.model_copy(update={"chat_template": '{{ messages }}{{ "a" * 10**10 }}'}))

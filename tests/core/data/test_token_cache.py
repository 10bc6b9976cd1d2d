"""Tokens kept between runs: those that encoding gives, found by all they depend on, never half and never damaged."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from grpo_core.data import token_cache
from grpo_core.data.prepare import load_data
from grpo_core.data.prompts import render_prompts
from grpo_core.data.token_cache import cache_folder, encode_cached
from grpo_core.model.tokenizer import encode
from grpo_core.recipe.plan import PlannedDataset
from grpo_core.types import BuildContext
from tests.core.data.fakes import component, plan_of, write_rows
from tests.tiny_models import make_tokenizer

TEXTS = ["6*7?", "", "6*8? ü", "6*7?"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, also for few texts."""
    monkeypatch.setattr(token_cache, "LEAST_CHARACTERS", 0)
    monkeypatch.setenv("GRPO_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tokens"


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerBase:
    return make_tokenizer()


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that was really encoded."""
    seen: list[str] = []

    def counting(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[tuple[int, ...]]:
        seen.extend(texts)
        return encode(texts, tokenizer)

    monkeypatch.setattr(token_cache, "encode", counting)
    return seen


def test_kept_tokens_are_those_that_encoding_gives(
    tokenizer: PreTrainedTokenizerBase, encoded: list[str], folder: Path
) -> None:
    first = encode_cached(TEXTS, tokenizer)
    assert encoded == TEXTS
    assert encode_cached(TEXTS, tokenizer) == first == encode(TEXTS, tokenizer)
    assert encoded == TEXTS
    assert [file.suffix for file in folder.iterdir()] == [".safetensors"]


@pytest.mark.parametrize("texts", [TEXTS[:-1], TEXTS[::-1], [*TEXTS, ""], ["6*7?", "6*8? ü", "6*7?"], ["6*7?6*8? ü"]])
def test_other_texts_are_not_found(texts: list[str], tokenizer: PreTrainedTokenizerBase, encoded: list[str]) -> None:
    encode_cached(TEXTS, tokenizer)
    encoded.clear()
    assert encode_cached(texts, tokenizer) == encode(texts, tokenizer)
    assert encoded == texts


def test_another_tokenizer_or_library_is_not_found(
    tokenizer: PreTrainedTokenizerBase, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    encode_cached(TEXTS, tokenizer)
    encoded.clear()
    other = make_tokenizer()
    other.add_tokens(["6*"])
    assert encode_cached(TEXTS, other) == encode(TEXTS, other) != encode(TEXTS, tokenizer)
    assert encoded == TEXTS
    monkeypatch.setattr(token_cache, "version", lambda name: "another")
    encode_cached(TEXTS, tokenizer)
    assert encoded == TEXTS * 2


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "other"])
def test_a_damaged_file_is_made_anew_with_a_warning(
    damage: str,
    tokenizer: PreTrainedTokenizerBase,
    encoded: list[str],
    folder: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    expected = encode_cached(TEXTS, tokenizer)
    [file] = folder.iterdir()
    content = file.read_bytes()
    if damage == "other":
        encode_cached(TEXTS[:2], tokenizer)
        content = next(each for each in folder.iterdir() if each != file).read_bytes()
    flipped = content[:-1] + bytes([content[-1] ^ 1])
    file.write_bytes({"cut": content[:-5], "flipped": flipped, "empty": b"", "other": content}[damage])
    encoded.clear()
    with caplog.at_level(logging.WARNING):
        assert encode_cached(TEXTS, tokenizer) == expected
    assert encoded == TEXTS
    assert "is damaged and made anew" in caplog.text
    assert encode_cached(TEXTS, tokenizer) == expected
    assert encoded == TEXTS


def test_a_folder_that_cannot_be_written_costs_a_warning_only(
    tokenizer: PreTrainedTokenizerBase, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.parent.write_text("a file where the folder would be")
    with caplog.at_level(logging.WARNING):
        assert encode_cached(TEXTS, tokenizer) == encode(TEXTS, tokenizer)
    assert "are not kept for the next run" in caplog.text


def test_few_texts_foreign_tokenizers_and_a_cache_that_is_off_write_nothing(
    tokenizer: PreTrainedTokenizerBase, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OfTheModelsOwn(PreTrainedTokenizerFast):
        pass

    own = OfTheModelsOwn(tokenizer_object=tokenizer.backend_tokenizer)
    monkeypatch.setattr(token_cache, "LEAST_CHARACTERS", 100)
    encode_cached(TEXTS, tokenizer)
    monkeypatch.setattr(token_cache, "LEAST_CHARACTERS", 0)
    assert encode_cached(TEXTS, own) == encode(TEXTS, own)
    monkeypatch.setenv("GRPO_CACHE_DIR", "")
    encode_cached(TEXTS, tokenizer)
    assert not folder.exists()


def test_the_files_not_used_for_longest_are_removed(
    tokenizer: PreTrainedTokenizerBase, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode_cached(["a"], tokenizer)
    [first] = folder.iterdir()
    monkeypatch.setattr(token_cache, "_MOST_BYTES", int(1.5 * first.stat().st_size))
    encode_cached(["b"], tokenizer)
    assert [file != first for file in folder.iterdir()] == [True]


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRPO_CACHE_DIR", "~/mine")
    assert cache_folder() == Path.home() / "mine"
    monkeypatch.delenv("GRPO_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == Path("/xdg/grpo-core")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache/grpo-core"


def test_a_changed_row_preprocessor_option_or_template_reaches_the_prompts(
    tmp_path: Path, tokenizer: PreTrainedTokenizerBase
) -> None:
    """Through the stages of a run: nothing older than its inputs is ever used."""
    file = tmp_path / "rows.jsonl"

    def prompts(question: str, sign: str, **options: object) -> list[str]:
        write_rows(file, [{"query": question, "a": 1, "b": 2}])
        code = tmp_path / f"sign{ord(sign)}.py"  # a process loads a file once
        code.write_text(
            "from grpo_core.api import Message, Sample\n"
            f"def f(row): return Sample(messages=(Message(role='user', content=row['query'] + {sign!r}),))\n"
        )
        preprocess = component("f").model_copy(update={"target": f"{code}:f"})
        if options:
            preprocess = component("make_preprocessor", options=True, **options)
        data = load_data(plan_of(PlannedDataset(reference=str(file), preprocess=preprocess)), BuildContext())
        rendered = render_prompts(data.train, tokenizer, max_prompt_tokens=None, over_long="drop")
        assert [encode([each.text], tokenizer)[0] for each in rendered.prompts] == [
            each.token_ids for each in rendered.prompts
        ]
        return [each.sample.messages[0].content for each in rendered.prompts]

    assert prompts("a", "?") == prompts("a", "?") == ["a?"]
    assert prompts("b", "?") == ["b?"]
    assert prompts("b", "!") == ["b!"]
    assert prompts("b", "!", rows=8) == ["1+2?"]
    tokenizer.chat_template = "{{ messages[0]['content'] | upper }}"
    assert prompts("b", "!") == ["b!"]


def test_keys_tell_apart_what_only_looks_alike(tokenizer: PreTrainedTokenizerBase) -> None:
    keys = {token_cache._key(texts, tokenizer) for texts in (["ab"], ["a", "b"], ["", "ab"], ["ab", ""], ["a b"])}
    assert len(keys) == 5
    assert json.loads(tokenizer.backend_tokenizer.to_str())["added_tokens"]

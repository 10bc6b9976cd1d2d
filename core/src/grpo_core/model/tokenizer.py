"""The tokenizer: loading, end tokens, and a conversation as the model reads it.

Nothing is padded here or anywhere through the tokenizer: prompts of different length never meet in one tensor before
the rollout engine puts them there. The chat template writes every special token itself, so the text is encoded
without adding any (no second BOS).
"""

from __future__ import annotations

import inspect
import json
import os
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn, TypeAlias

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from grpo_core.errors import DataError, Problem, RecipeError
from grpo_core.model.gguf import gguf_end_ids, gguf_tokenizer, is_gguf
from grpo_core.model.json_files import model_json
from grpo_core.model.template_cost import template_cost
from grpo_core.model.time_limit import run_limited
from grpo_core.recipe.schema import ModelSettings
from grpo_core.regular_files import read_bytes
from grpo_core.types import Message
from grpo_core.types.sample import PLACEHOLDER

__all__ = [
    "FALLBACK_TEMPLATE",
    "RenderedPrompt",
    "check_template_options",
    "encode",
    "end_token_ids",
    "load_tokenizer",
    "named_end_ids",
    "render_prompt",
    "render_text",
    "template_warning",
    "uses_variable",
]

Tokenizer: TypeAlias = PreTrainedTokenizerBase

FALLBACK_TEMPLATE = (
    "{% for message in messages %}### {{ message['role'] | capitalize }}:\n{{ message['content'] }}\n\n{% endfor %}"
    "{% if add_generation_prompt %}### Assistant:\n{% endif %}"
)
"""For tokenizers without a chat template: roles as headings. Preceded by the BOS token where the tokenizer adds one."""

RENDERING_LIMIT_S = 10.0
"""What it may take to write one conversation, which takes less than a thousandth of a second."""
_BATCH_TEXTS = 1000
_REFUSED = "Some templates know no system role or want user and assistant in turn; see model.chat_template."
_UNREAD = "the chat template has no variable of this name; remove it, or see how the template spells it"
_BOS = "{{ bos_token }}"
_WRITES_TEXTS: dict[str, bool] = {}
"""Templates that know parts -> whether they also write a text."""
_TOKENIZER_FILES = (
    *("config.json", "tokenizer.json", "tokenizer_config.json"),
    *("special_tokens_map.json", "added_tokens.json", "vocab.json"),
)
_LOCAL_STARTS = (".", "/", "~")


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPrompt:
    """A conversation as the model reads it."""

    text: str
    """The chat template applied, up to where the assistant's turn begins; a `<think>` that the template writes there
    belongs to it."""
    token_ids: tuple[int, ...]
    """[P] Its tokens."""


def load_tokenizer(model: ModelSettings) -> Tokenizer:
    """Load the tokenizer of a model, with a chat template and a pad token; a local folder needs no network.

    The template is that of the settings, else the tokenizer's own, else `FALLBACK_TEMPLATE` (`template_warning` then
    says so). A missing pad token becomes the end token. Raises `RecipeError` when there is no tokenizer.
    """
    key, source = _source(model)
    _require_folder_or_id(source, key)
    try:
        tokenizer = gguf_tokenizer(source) if is_gguf(source) else _load(source, model)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a bare Exception from Rust, or code of the model's own
        if "trust_remote_code" in str(error):
            allow = "read that code, then allow it: model.trust_remote_code=true"
            _fail(key, source, f"its tokenizer needs Python code that it brings; {allow}")
        where = f"the hub (a folder would be written ./{source})"
        if _is_folder(source) or is_gguf(source):
            where = "the folder" if _is_folder(source) else "the file"
        reason = _broken_file(Path(source)) or _first_line(error)
        _fail(key, source, f"no tokenizer can be loaded from {where}: {reason}")
    if not tokenizer.get_vocab().keys() - tokenizer.get_added_vocab().keys():
        # What transformers makes of a folder with a config.json and no tokenizer files.
        _fail(key, source, "holds no tokenizer: there is no tokenizer.json, vocabulary or the like")
    _set_template(tokenizer, model)
    _require_options(tokenizer, model)
    if tokenizer.pad_token_id is None and tokenizer.eos_token_id is not None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _source(model: ModelSettings) -> tuple[str, str]:
    """The setting that names the tokenizer, and its value."""
    return ("model.path", model.path) if model.tokenizer is None else ("model.tokenizer", model.tokenizer)


def _load(source: str, model: ModelSettings) -> Tokenizer:
    return AutoTokenizer.from_pretrained(
        source,
        revision=model.revision if model.tokenizer is None else None,
        local_files_only=_is_folder(source),
        trust_remote_code=model.trust_remote_code,
    )


def end_token_ids(tokenizer: Tokenizer, model: ModelSettings) -> frozenset[int]:
    """Every token that ends a completion: the tokenizer's, and those of generation_config.json and config.json, or of
    the GGUF file.

    Chat models often have several: one ends a turn, another a text.
    """
    return frozenset().union(*named_end_ids(tokenizer, model).values())


def named_end_ids(tokenizer: Tokenizer, model: ModelSettings) -> dict[str, frozenset[int]]:
    """The end tokens that each place names; places that name none are there too, with no token."""
    own = {"the tokenizer": _ids(tokenizer.eos_token_id)}
    if is_gguf(model.path):
        return own | {"the GGUF file": gguf_end_ids(model.path)}
    config, generation = model_json(model, "config.json"), model_json(model, "generation_config.json")
    text_config = config.get("text_config")
    of_text = text_config.get("eos_token_id") if isinstance(text_config, Mapping) else None
    return own | {
        "generation_config.json": _ids(generation.get("eos_token_id")),
        "config.json": _ids(config.get("eos_token_id")) | _ids(of_text),
    }


def _ids(value: object) -> frozenset[int]:
    return frozenset(item for item in (value if isinstance(value, list) else [value]) if isinstance(item, int))


def template_warning(tokenizer: Tokenizer) -> str | None:
    """What to tell a person about the chat template; None when the model has one of its own that writes turns."""
    if str(tokenizer.chat_template).removeprefix(_BOS) == FALLBACK_TEMPLATE:
        return (
            "the tokenizer has no chat template, so roles are written as plain headings ('### User:'); "
            "set model.chat_template when the model was trained on another form"
        )
    try:
        text = render_text([Message(role="user", content="ping")], tokenizer)
    except DataError:
        return None  # what it refuses is said about a row of the dataset
    turn = {"role": "user", "content": "ping"}
    if not any(written in text for written in (repr(turn), json.dumps(turn))):
        return None
    return (
        f"the chat template writes messages as data, {textwrap.shorten(text, 80, placeholder=' …')!r}, and not as "
        "turns that the model could learn to end; set model.chat_template"
    )


def render_prompt(messages: Sequence[Message], tokenizer: Tokenizer) -> RenderedPrompt:
    """Write a conversation with the chat template, ready for the assistant's turn; raises `DataError` when the
    template refuses it (some know no system role)."""
    text = render_text(messages, tokenizer)
    return RenderedPrompt(text=text, token_ids=encode([text], tokenizer)[0])


def render_text(
    messages: Sequence[Message],
    tokenizer: Tokenizer,
    *,
    tools: Sequence[Mapping[str, object]] | None = None,
    options: Mapping[str, object] = MappingProxyType({}),
    placeholder: str | None = None,
) -> str:
    """The text of `render_prompt`; `tools` are function schemas, `options` variables of the template. `placeholder` is
    the model's own text for an image, where each `<image>` of the messages is one; None: there are no images."""
    turns = _turns(messages, tokenizer, placeholder)

    def apply() -> str:
        return str(
            tokenizer.apply_chat_template(turns, tools=tools, tokenize=False, add_generation_prompt=True, **options)
        )

    try:
        return run_limited(apply, limit_s=RENDERING_LIMIT_S)
    except Exception as error:
        roles = ", ".join(message.role for message in messages)
        raise DataError(
            f"the chat template cannot write this conversation ({roles}): {_first_line(error)}",
            hint="Look for a loop in it; see model.chat_template." if isinstance(error, TimeoutError) else _REFUSED,
        ) from error


def _turns(messages: Sequence[Message], tokenizer: Tokenizer, placeholder: str | None) -> list[dict[str, object]]:
    """What the template is given. Texts are given as texts where that is enough. Images are parts of a content, and so
    are texts where the template leaves out what is no part; one without parts gets the placeholder in the text."""
    if not _takes_parts(tokenizer) or (placeholder is None and _takes_texts(tokenizer)):
        contents: list[object] = [
            message.content if placeholder is None else message.content.replace(PLACEHOLDER, placeholder)
            for message in messages
        ]
    else:
        contents = [_parts(message.content, images=placeholder is not None) for message in messages]
    return [{"role": message.role, "content": content} for message, content in zip(messages, contents, strict=True)]


def _parts(content: str, *, images: bool) -> list[dict[str, str]]:
    pieces = content.split(PLACEHOLDER) if images else [content]
    parts: list[dict[str, str]] = []
    for place, piece in enumerate(pieces):
        if place:
            parts.append({"type": "image"})
        if piece:
            parts.append({"type": "text", "text": piece})
    return parts


def _takes_parts(tokenizer: Tokenizer) -> bool:
    """Whether the chat template knows contents that are lists of parts, images among them."""
    template = str(tokenizer.chat_template)
    return re.search(r"\btype\b", template) is not None and "image" in template


def _takes_texts(tokenizer: Tokenizer) -> bool:
    """Whether the chat template, which knows parts, writes a content that is a text; asked once for a template."""
    template = str(tokenizer.chat_template)
    if template not in _WRITES_TEXTS:
        try:
            text = run_limited(
                lambda: str(tokenizer.apply_chat_template([{"role": "user", "content": "ping"}], tokenize=False)),
                limit_s=RENDERING_LIMIT_S,
            )
        except Exception:  # noqa: BLE001 - what a template makes of what it does not expect is its own
            text = ""
        _WRITES_TEXTS[template] = "ping" in text
    return _WRITES_TEXTS[template]


def check_template_options(options: Mapping[str, object]) -> None:
    """Raise `DataError` for an option that has the name of something the run itself decides."""
    taken = set(inspect.signature(PreTrainedTokenizerBase.apply_chat_template).parameters) | {"messages"}
    for name in options:
        if name in taken:
            raise DataError(f"'{name}' is not the chat template's to be given: the run decides it", hint="Remove it.")


def uses_variable(tokenizer: Tokenizer, name: str) -> bool:
    """Whether the chat template reads a variable of this name."""
    return re.search(rf"\b{re.escape(name)}\b", str(tokenizer.chat_template)) is not None


def encode(texts: Sequence[str], tokenizer: Tokenizer) -> list[tuple[int, ...]]:
    """The tokens of rendered texts; special tokens in them are recognised and none is added."""
    encoded: list[tuple[int, ...]] = []
    shared: dict[int, int] = {}  # one object for each id, or a large dataset's tokens take four times the memory
    for start in range(0, len(texts), _BATCH_TEXTS):
        batch = list(texts[start : start + _BATCH_TEXTS])
        found = tokenizer(batch, add_special_tokens=False, return_attention_mask=False, verbose=False)
        encoded += [tuple(shared.setdefault(token, token) for token in ids) for ids in found["input_ids"]]
    return encoded


def _set_template(tokenizer: Tokenizer, model: ModelSettings) -> None:
    if tokenizer.chat_template is None and model.tokenizer is None and not is_gguf(model.path):
        # Where older vision-language models keep it, and only their processor reads it.
        tokenizer.chat_template = model_json(model, "chat_template.json").get("chat_template")
    cost = template_cost(str(model.chat_template or tokenizer.chat_template or ""))
    if cost is not None:
        key, source = _source(model) if model.chat_template is None else ("model.chat_template", "the template")
        _fail(key, source, f"the chat template cannot be used: {cost}")
    if model.chat_template is not None:
        tokenizer.chat_template = model.chat_template
        _check_template(tokenizer, model.chat_template)
    elif tokenizer.chat_template:
        _check_own_template(tokenizer, model)
    else:
        # Stored in the tokenizer, so the exported model carries the form it was trained on.
        tokenizer.chat_template = (_BOS if _adds_bos(tokenizer) else "") + FALLBACK_TEMPLATE


def _check_template(tokenizer: Tokenizer, setting: str) -> None:
    """Refuse a template that cannot be compiled, or that leaves out what the user says."""
    probe = "ping"
    try:
        text = render_text([Message(role="user", content=probe)], tokenizer)
    except DataError as error:
        raise RecipeError([Problem(path="model.chat_template", message=error.message)]) from error
    if probe not in text:
        shown = setting if len(setting) < 60 else setting[:57] + "..."
        message = f"'{shown}' is not a template: what it writes does not contain the message"
        raise RecipeError([Problem(path="model.chat_template", message=message)])


def _check_own_template(tokenizer: Tokenizer, model: ModelSettings) -> None:
    """Refuse a template that has no end, or that writes all prompts alike; what it refuses itself is said about a row
    of the dataset."""
    key, source = _source(model)
    try:
        texts = {render_text([Message(role="user", content=probe)], tokenizer) for probe in ("ping", "pong")}
    except DataError as error:
        if isinstance(error.__cause__, TimeoutError):
            _fail(key, source, f"{error.message}. {error.hint}")
        return
    if len(texts) == 1:
        shown = textwrap.shorten(repr(texts.pop()), 80, placeholder=" …")
        _fail(key, source, f"its chat template writes {shown} whatever the user says; set model.chat_template")


def _require_options(tokenizer: Tokenizer, model: ModelSettings) -> None:
    """Refuse options that the template never reads, which would change nothing without a word."""
    path = "model.chat_template_options"
    try:
        check_template_options(model.chat_template_options)
    except DataError as error:
        raise RecipeError([Problem(path=path, message=error.message)]) from error
    unread = [name for name in model.chat_template_options if not uses_variable(tokenizer, name)]
    if unread:
        raise RecipeError([Problem(path=f"{path}.{name}", message=_UNREAD) for name in unread])


def _adds_bos(tokenizer: Tokenizer) -> bool:
    bos = tokenizer.bos_token_id
    return bos is not None and list(tokenizer("a")["input_ids"])[:1] == [bos]


def _broken_file(folder: Path) -> str | None:
    """Which of a tokenizer's files is no JSON, and why."""
    for name in _TOKENIZER_FILES:
        try:
            json.loads(read_bytes(folder / name, most=2**30))
        except OSError:
            continue
        except (ValueError, RecursionError) as error:
            return f"{name} is no JSON: {_first_line(error)}"
    return None


def _require_folder_or_id(source: str, key: str) -> None:
    is_file = os.path.isfile(source)
    if is_gguf(source):
        if not is_file:
            _fail(key, source, "there is no such file")
    elif is_file:
        _fail(key, source, "this is a file; give the folder that holds tokenizer.json")
    elif not _is_folder(source) and (source.startswith(_LOCAL_STARTS) or source.count("/") > 1):
        _fail(key, source, "there is no such folder")


def _is_folder(source: str) -> bool:
    return os.path.isdir(source)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _fail(key: str, source: str, message: str) -> NoReturn:
    raise RecipeError([Problem(path=key, message=f"{source}: {message}")])

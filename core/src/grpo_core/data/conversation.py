"""Conversations as datasets write them -> messages: role/content, from/value, parts, pairs, and any of these as JSON
text. Nothing is guessed: what is not understood is an error that names the column."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grpo_core.data.images import PLACEHOLDER, image_refs
from grpo_core.errors import DataError
from grpo_core.types import ImageRef, Message

__all__ = ["Conversation", "holds_chat", "parse_chat", "parse_history", "text_message"]

_ROLES = {
    "system": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "tool": "tool",
    "observation": "tool",
}
_IMAGE_KEYS = ("image", "image_url", "path", "url", "bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Messages, and the images that stood inside them."""

    messages: tuple[Message, ...]
    """In order."""
    images: tuple[ImageRef, ...] = ()
    """In the order of their `<image>`."""


def holds_chat(value: object) -> bool:
    """Whether a prompt cell is a conversation instead of a text: a list, or the JSON text of a list of messages."""
    if isinstance(value, str):
        if not value.lstrip().startswith("[{"):
            return False
        try:
            value = json.loads(value)
        except ValueError:
            return False
        return isinstance(value, list) and all(isinstance(turn, dict) and "role" in turn for turn in value)
    return isinstance(value, Sequence) and not isinstance(value, bytes)


def parse_chat(value: object, *, column: str) -> Conversation:
    """Read a conversation: a list of `{role, content}` or `{from, value}`, or its JSON text."""
    value = _from_json(value, column)
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise DataError(
            f"column {column}: a conversation is a list of messages, not {type(value).__name__}",
            hint='Write [{"role": "user", "content": "6*7?"}].',
        )
    if not value:
        raise DataError(f"column {column}: the conversation is empty")
    turns = [_parse_turn(turn, f"column {column}, message {number}") for number, turn in enumerate(value, start=1)]
    return _join(turns)


def parse_history(value: object) -> Conversation:
    """Read earlier turns: pairs of a question and its reply, or messages; None and an empty list are none."""
    if not value:
        return Conversation(messages=())
    value = _from_json(value, "history")
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise DataError(
            f"column history: earlier turns are a list of [question, reply] pairs, not {type(value).__name__}",
            hint="If it means something else, rename it: --columns history=history_text.",
        )
    return _join([part for number, turn in enumerate(value, start=1) for part in _parse_pair(turn, number)])


def text_message(role: str, value: object, *, column: str) -> Message:
    """A message whose content is a cell; it must be a text with something in it."""
    if value is None:
        raise DataError(f"column {column}: the {_meaning(role)} is missing (None)")
    if not isinstance(value, str):
        raise DataError(f"column {column}: the {_meaning(role)} must be a text, not {type(value).__name__}")
    if not value.strip():
        raise DataError(f"column {column}: the {_meaning(role)} is empty")
    return Message(role=role, content=value)


def _meaning(role: str) -> str:
    return {"user": "prompt", "system": "system prompt", "assistant": "reply"}.get(role, "message")


def _from_json(value: object, column: str) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"column {column}: is a text, and not the JSON of a list of messages: {error}",
            hint=f"A plain prompt belongs in a column like query: --columns {column}=query.",
        ) from error


def _parse_pair(turn: object, number: int) -> list[Conversation]:
    where = f"column history, turn {number}"
    if isinstance(turn, Mapping):
        return [_parse_turn(turn, where)]
    if isinstance(turn, Sequence) and not isinstance(turn, str) and len(turn) == 2:
        question, reply = turn
        return [
            _parse_turn({"role": "user", "content": question}, where),
            _parse_turn({"role": "assistant", "content": reply}, where),
        ]
    raise DataError(f"{where}: is neither a [question, reply] pair nor a message")


def _parse_turn(turn: object, where: str) -> Conversation:
    if not isinstance(turn, Mapping):
        raise DataError(f"{where}: a message has role and content, this is {type(turn).__name__}")
    role = turn.get("role", turn.get("from"))
    if not isinstance(role, str) or role.lower() not in _ROLES:
        raise DataError(f"{where}: the role {role!r} is not known", hint=f"Known roles are {', '.join(_ROLES)}.")
    if turn.get("tool_calls"):
        raise DataError(f"{where}: calls tools, which prompts cannot do yet")
    text, images = _parse_content(turn.get("content", turn.get("value")), where)
    return Conversation(messages=(Message(role=_ROLES[role.lower()], content=text),), images=images)


def _parse_content(content: object, where: str) -> tuple[str, tuple[ImageRef, ...]]:
    """A text, or parts `{type: text, text}` and `{type: image}` in a row."""
    if isinstance(content, str):
        return content, ()
    if not isinstance(content, Sequence) or isinstance(content, bytes):
        what = "no content" if content is None else f"content of type {type(content).__name__}, not a text"
        raise DataError(f"{where}: has {what}")
    texts: list[str] = []
    images: list[ImageRef] = []
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind in ("image", "image_url"):
            texts.append(PLACEHOLDER)  # its image is here, or in the row's own column of images
            images += [image for key in _IMAGE_KEYS for image in image_refs(part.get(key), column=where)]
        else:
            raise DataError(f"{where}: has a part that is neither text nor image: {part!r}")
    return "".join(texts), tuple(images)


def _join(turns: Sequence[Conversation]) -> Conversation:
    return Conversation(
        messages=tuple(message for turn in turns for message in turn.messages),
        images=tuple(image for turn in turns for image in turn.images),
    )

"""Conversations in every spelling that datasets use."""

from __future__ import annotations

import pytest

from grpo_core.data.conversation import holds_chat, parse_chat, parse_history, text_message
from grpo_core.errors import DataError
from grpo_core.types import ImageRef, Message

USER = Message(role="user", content="6*7?")


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "user", "content": "6*7?"}],
        [{"from": "human", "value": "6*7?"}],
        '[{"role": "user", "content": "6*7?"}]',
        [{"role": "User", "content": [{"type": "text", "text": "6*"}, {"type": "text", "text": "7?"}]}],
        ({"role": "user", "content": "6*7?", "tool_calls": None, "name": "ann"},),
    ],
)
def test_every_spelling_of_a_message_is_read(value: object) -> None:
    assert parse_chat(value, column="messages").messages == (USER,)


@pytest.mark.parametrize(
    ("role", "meant"),
    [("gpt", "assistant"), ("model", "assistant"), ("human", "user"), ("observation", "tool"), ("system", "system")],
)
def test_roles_of_other_formats_are_translated(role: str, meant: str) -> None:
    assert parse_chat([{"from": role, "value": "x"}], column="conversations").messages[0].role == meant


def test_an_image_inside_a_message_becomes_a_placeholder_and_an_image() -> None:
    content = [{"type": "image", "image": "a.png"}, {"type": "text", "text": "What is it?"}]
    chat = parse_chat([{"role": "user", "content": content}], column="messages")
    assert chat.messages[0].content == "<image>What is it?"
    assert chat.images == (ImageRef(source="a.png"),)


def test_an_image_url_part_and_a_bare_image_part_are_understood() -> None:
    content = [{"type": "image_url", "image_url": {"url": "a.png"}}, {"type": "image", "text": None}]
    chat = parse_chat([{"role": "user", "content": content}], column="messages")
    assert chat.messages[0].content == "<image><image>"
    assert chat.images == (ImageRef(source="a.png"),)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "column messages: the conversation is empty"),
        ("6*7?", "column messages: is a text, and not the JSON"),
        (42, "column messages: a conversation is a list of messages, not int"),
        ({"role": "user", "content": "x"}, "a conversation is a list of messages, not dict"),
        ('{"role": "user"}', "a conversation is a list of messages, not dict"),
        ([{"role": "user"}], "column messages, message 1: has no content"),
        ([{"role": "user", "content": 42}], "message 1: has content of type int, not a text"),
        ([{"role": "user", "content": "x"}, {"content": "y"}], "message 2: the role None is not known"),
        ([{"role": "wizard", "content": "x"}], "the role 'wizard' is not known"),
        (["x"], "message 1: a message has role and content, this is str"),
        ([{"role": "user", "content": [{"type": "audio"}]}], "message 1: has a part that is neither text nor image"),
        ([{"role": "user", "content": [{"type": "text"}]}], "message 1: has a part that is neither text nor image"),
        ([{"role": "assistant", "content": "", "tool_calls": [{"id": 1}]}], "message 1: calls tools"),
    ],
)
def test_what_is_no_conversation_says_which_message_is_wrong(value: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_chat(value, column="messages")


@pytest.mark.parametrize(
    "value",
    [
        [["6*7?", "42"]],
        [("6*7?", "42")],
        '[["6*7?", "42"]]',
        [USER_TURN := {"role": "user", "content": "6*7?"}, {"role": "assistant", "content": "42"}],
    ],
)
def test_history_is_pairs_or_messages(value: object) -> None:
    assert parse_history(value).messages == (USER, Message(role="assistant", content="42"))


@pytest.mark.parametrize("value", [None, [], ""])
def test_no_history_is_no_turns(value: object) -> None:
    assert parse_history(value).messages == ()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("the French Revolution", "column history: is a text, and not the JSON"),
        ({"a": 1}, "column history: earlier turns are a list of"),
        ([["6*7?"]], "column history, turn 1: is neither"),
        ([["6*7?", None]], "column history, turn 1: has no content"),
    ],
)
def test_a_history_that_is_none_is_an_error(value: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_history(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [(None, "is missing"), ("", "is empty"), (" \n", "is empty"), (42, "must be a text, not int")],
)
def test_a_prompt_must_be_a_text_with_something_in_it(value: object, message: str) -> None:
    with pytest.raises(DataError, match=f"column query: the prompt {message}"):
        text_message("user", value, column="query")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([{"role": "user", "content": "x"}], True),
        ('[{"role": "user", "content": "x"}]', True),
        ("What is 6*7?", False),
        ("[{not json", False),
        ('[{"a": 1}] is JSON', False),
        ('[{"a": 1}]', False),
    ],
)
def test_a_prompt_cell_is_a_conversation_only_when_it_holds_messages(value: object, expected: bool) -> None:
    assert holds_chat(value) is expected

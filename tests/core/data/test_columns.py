"""The mapping of well-known columns: what becomes the prompt, and that nothing else is lost."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.data.columns import CHAT_COLUMNS, TEXT_COLUMNS, check_names, check_renames, map_row, rename, with_system
from grpo_core.errors import DataError
from grpo_core.types import ImageRef, Message, Sample
from grpo_core.types.reserved import RESERVED_NAMES


def turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def prompt(row: Mapping[str, object]) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in map_row(row).sample.messages]


@pytest.mark.parametrize("column", TEXT_COLUMNS)
def test_each_text_column_becomes_the_user_message(column: str) -> None:
    sample = map_row({column: "6*7?", "solution": "42"}).sample
    assert sample == Sample(messages=(Message(role="user", content="6*7?"),), columns={"solution": "42"})


@pytest.mark.parametrize("column", [*CHAT_COLUMNS, "prompt"])
def test_a_conversation_is_kept_as_it_is(column: str) -> None:
    assert prompt({column: [turn("system", "s"), turn("user", "6*7?")]}) == [("system", "s"), ("user", "6*7?")]


def test_a_conversation_as_json_text_never_becomes_the_question() -> None:
    text = '[{"role": "user", "content": "6*7?"}]'
    assert prompt({"messages": text}) == prompt({"prompt": text}) == [("user", "6*7?")]


def test_instruction_and_input_are_joined() -> None:
    assert prompt({"instruction": "Add.", "input": "1 2"}) == [("user", "Add.\n\n1 2")]
    assert prompt({"instruction": "Add.", "input": ""}) == [("user", "Add.")]
    assert prompt({"instruction": "Add.", "input": None}) == [("user", "Add.")]


def test_history_comes_after_the_system_prompt_and_before_the_question() -> None:
    row = {"query": "6*7?", "history": [["Hi", "Hello"]], "system": "Be brief."}
    expected = [("system", "Be brief."), ("user", "Hi"), ("assistant", "Hello"), ("user", "6*7?")]
    assert prompt(row) == expected
    chat = [turn("system", "Be brief."), turn("user", "6*7?")]
    assert prompt({"messages": chat, "history": [["Hi", "Hello"]]}) == expected


def test_a_system_column_that_says_what_the_conversation_says_is_no_conflict() -> None:
    row = {"messages": [turn("system", "s"), turn("user", "q")], "system_prompt": "s"}
    assert prompt(row) == [("system", "s"), ("user", "q")]


def test_a_final_assistant_turn_leaves_the_prompt_and_stays_as_a_column() -> None:
    chat = [turn("user", "Hi"), turn("assistant", "Hello"), turn("user", "6*7?"), turn("assistant", "42")]
    mapped = map_row({"messages": chat, "solution": "42"})
    assert prompt({"messages": chat}) == [("user", "Hi"), ("assistant", "Hello"), ("user", "6*7?")]
    assert mapped.sample.columns == {"solution": "42", "response": "42"}
    assert mapped.notes == ()


def test_a_response_column_is_kept_over_the_final_turn_and_that_is_said() -> None:
    mapped = map_row({"messages": [turn("user", "6*7?"), turn("assistant", "It is 42.")], "response": "42"})
    assert mapped.sample.columns == {"response": "42"}
    assert mapped.notes == ("a final assistant turn left the prompt, and the row had a column response, which is kept",)


def test_a_conversation_wins_over_a_text_and_that_is_said() -> None:
    mapped = map_row({"messages": [turn("user", "q")], "problem": "p", "query": None})
    assert [message.content for message in mapped.sample.messages] == ["q"]
    assert mapped.sample.columns == {"problem": "p", "query": None}
    assert mapped.notes == ("the prompt is in messages; the column problem is not part of it",)


def test_an_empty_prompt_column_beside_a_full_one_is_just_a_column() -> None:
    sample = map_row({"query": None, "question": "6*7?", "messages": None}).sample
    assert sample.messages[0].content == "6*7?"
    assert sample.columns == {"query": None}


def test_a_column_that_the_user_named_wins_and_the_others_stay_columns() -> None:
    row = {"query": "a", "prompt": "b", "conversations": [turn("user", "c")]}
    sample = map_row(row, explicit=["prompt", "solution"]).sample
    assert sample.messages[0].content == "b"
    assert sample.columns == {"query": "a", "conversations": [turn("user", "c")]}


def test_naming_one_half_of_instruction_and_input_keeps_the_other() -> None:
    sample = map_row({"instruction": "Add.", "input": "1 2", "query": "q"}, explicit=["instruction"]).sample
    assert sample.messages[0].content == "Add.\n\n1 2"
    assert sample.columns == {"query": "q"}


def test_a_conversation_that_lost_against_a_named_column_is_not_lost() -> None:
    chat = [turn("user", "c")]
    assert map_row({"messages": chat, "query": "q"}, explicit=["query"]).sample.columns == {"messages": chat}


def test_images_of_column_and_conversation_come_in_the_order_of_their_placeholders() -> None:
    sample = map_row({"query": "What is it?", "images": ["a.png"], "solution": "cat"}).sample
    assert sample.messages[0].content == "<image>What is it?"
    assert sample.images == (ImageRef(source="a.png"),)
    assert sample.columns == {"solution": "cat"}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"query": None, "solution": "42"}, "column query: the prompt is missing"),
        ({"query": "", "solution": "42"}, "column query: the prompt is empty"),
        ({"query": 42}, "column query: the prompt must be a text, not int"),
        (
            {"gold": "42", "question_text": "6*7?", "level": 1},
            r"the columns are gold, question_text, level(.|\n)*--columns question_text=query",
        ),
        ({"level": 1, "tags": []}, r"--columns level=query"),
        ({"text": "Double x.", "code": "def f(x):\n    return 2 * x", "test_list": []}, r"--columns text=query"),
        ({"image": "pictures/0001.png", "text": "How many?"}, r"--columns text=query"),
        ({}, r"the columns are none(.|\n)*Give each row a column `query`"),
        (
            {"query": "a", "question": "b"},
            r"columns query and question: each could be the prompt(.|\n)*--columns question=",
        ),
        (
            {"instruction": "a", "input": "b", "problem": "c"},
            "columns instruction and problem: each could be the prompt",
        ),
        ({"messages": [turn("user", "a")], "conversations": [turn("user", "b")]}, "each could be the conversation"),
        ({"query": "a", "system": "s", "system_prompt": "t"}, "each could be the system prompt"),
        ({"query": "a", "image": "a.png", "images": ["b.png"]}, "each could be the images"),
        ({"query": "a", "system": 3}, "column system: the system prompt must be a text, not int"),
        (
            {"messages": [turn("system", "s"), turn("user", "q")], "system": "t"},
            "column system: the conversation has a",
        ),
        ({"messages": []}, "column messages: the conversation is empty"),
        ({"messages": [turn("assistant", "42")]}, "column messages: nothing is asked"),
        ({"messages": [turn("system", "s")]}, "column messages: nothing is asked"),
        ({"input": ["1 2"]}, "column input, message 1: a message has role and content"),
        ({"instruction": "a", "input": [1]}, "column input: the prompt must be a text, not list"),
    ],
)
def test_a_row_without_a_clear_prompt_names_the_column(row: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        map_row(row)


VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.integers()), st.just({"a": [1]}))
OTHER_NAMES = st.text(min_size=1).filter(lambda name: name not in {"messages", "history", *TEXT_COLUMNS, *CHAT_COLUMNS})
OTHERS = st.dictionaries(
    OTHER_NAMES.filter(lambda name: name not in {"system", "system_prompt", "image", "images"}), VALUES
)


@given(column=st.sampled_from(TEXT_COLUMNS), others=OTHERS)
def test_no_other_column_is_ever_lost_or_changed_beside_a_text(column: str, others: dict[str, object]) -> None:
    sample = map_row({column: "6*7?", **others}).sample
    assert sample.columns == others
    assert list(sample.columns) == list(others)


@given(others=OTHERS, reply=st.booleans())
def test_no_other_column_is_ever_lost_or_changed_beside_a_conversation(others: dict[str, object], reply: bool) -> None:
    chat = [turn("user", "6*7?"), *([turn("assistant", "42")] if reply else [])]
    sample = map_row({"messages": chat, **others}).sample
    assert sample.columns == {**({"response": "42"} if reply else {}), **others}


@given(others=OTHERS, system=st.sampled_from(["system", "system_prompt"]))
def test_no_other_column_is_ever_lost_beside_everything_at_once(others: dict[str, object], system: str) -> None:
    row = {**others, "query": "6*7?", system: "s", "history": [["a", "b"]], "images": ["x.png"]}
    sample = map_row(row).sample
    assert sample.columns == others
    assert [message.role for message in sample.messages] == ["system", "user", "assistant", "user"]


CELLS = st.recursive(
    VALUES | st.sampled_from(["user", "assistant", "system", "x", '[{"role": "user", "content": "q"}]', "[{", b"png"]),
    lambda cells: (
        st.lists(cells, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "from", "value", "type", "text", "image", "bytes"]), cells
        )
    ),
    max_leaves=6,
)
ANY_NAMES = st.sampled_from([*TEXT_COLUMNS, *CHAT_COLUMNS, "system", "history", "images", "image", "response", "other"])


@given(row=st.dictionaries(ANY_NAMES, CELLS), explicit=st.frozensets(ANY_NAMES, max_size=2))
def test_any_row_is_a_prompt_with_a_question_or_an_error_that_names_a_column(
    row: dict[str, object], explicit: frozenset[str]
) -> None:
    try:
        sample = map_row(row, explicit=explicit).sample
    except DataError as error:
        refusal = error.message
    else:
        refusal = ""
    if refusal:
        assert "column" in refusal or "prompt" in refusal
        return
    assert sample.messages[-1].role in ("user", "tool")
    assert all(isinstance(message.content, str) for message in sample.messages)
    assert sum(message.content.count("<image>") for message in sample.messages) >= len(sample.images)
    kept = {name: value for name, value in sample.columns.items() if name in row}
    assert kept == {name: row[name] for name in kept}
    gone = row.keys() - kept.keys()
    assert gone <= {*TEXT_COLUMNS, *CHAT_COLUMNS, "system", "history", "images", "image"}


@given(names=st.lists(st.text(max_size=3), min_size=1, max_size=5, unique=True), data=st.data())
def test_renames_that_are_allowed_can_be_undone(names: list[str], data: st.DataObject) -> None:
    renames = data.draw(st.dictionaries(st.sampled_from(names), st.text(max_size=3), max_size=3))
    row: dict[str, object] = {name: place for place, name in enumerate(names)}
    try:
        check_renames(row, renames)
    except DataError:
        return
    renamed = rename(row, renames)
    assert list(renamed.values()) == list(row.values())
    assert rename(renamed, {new: old for old, new in renames.items()}) == row


def test_renaming_keeps_order_and_values() -> None:
    row = {"text1": "6*7?", "gold": "42", "level": None}
    assert rename(row, {"text1": "query", "gold": "solution"}) == {"query": "6*7?", "solution": "42", "level": None}


def test_columns_can_swap_names() -> None:
    check_renames(["query", "question"], {"query": "question", "question": "query"})
    assert rename({"query": 1, "question": 2}, {"query": "question", "question": "query"}) == {
        "question": 1,
        "query": 2,
    }


@pytest.mark.parametrize(
    ("renames", "message"),
    [
        ({"golt": "solution"}, r"has no column golt(.|\n)*Did you mean gold\? Its columns are gold, query"),
        ({"gold": "query"}, "there would be two columns query"),
        ({"gold": "x", "query": "x"}, "there would be two columns x"),
    ],
)
def test_a_rename_that_cannot_be_made_says_why(renames: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_renames(["query", "gold"], renames)


@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
def test_a_reserved_name_says_how_to_rename_it(name: str) -> None:
    check_names(["query", "solution"])
    with pytest.raises(DataError, match=rf"column {name}: the name is reserved(.|\n)*--columns {name}=row_{name}"):
        check_names(["solution", name])


def test_a_system_prompt_is_added_only_where_there_is_none() -> None:
    plain = Sample(messages=(Message(role="user", content="q"),))
    assert [message.role for message in with_system(plain, "s").messages] == ["system", "user"]
    assert with_system(with_system(plain, "own"), "s").messages[0].content == "own"
    assert with_system(plain, "") == plain

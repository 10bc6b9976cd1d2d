"""What a row gives the chat template, and what of it the template leaves out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.data.prompts import render_prompts
from grpo_core.data.samples import prompt_key
from grpo_core.errors import DataError
from grpo_core.types import Message, Sample
from tests.tiny_models import make_tokenizer

USER_ONLY = "{% for m in messages if m['role'] == 'user' %}[{{ m['content'] | trim }}]{% endfor %}"
WITH_ALL = (
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{{ m['content'] }}\n{% endfor %}"
    "{% if enable_thinking is not defined or enable_thinking %}<think>{% endif %}"
)
SEARCH = {"type": "function", "function": {"name": "search_web", "description": "Searches.", "parameters": {}}}


def tokenizer_with(template: str) -> Any:
    tokenizer = make_tokenizer()
    tokenizer.chat_template = template
    return tokenizer


def sample(*messages: tuple[str, str], id: str = "train-000000", **columns: object) -> Sample:
    return Sample(messages=tuple(Message(role=r, content=c) for r, c in messages), columns=columns, id=id)


def rendered(template: str, *samples: Sample, **options: object) -> tuple[list[str], tuple[str, ...]]:
    found = render_prompts(
        samples, tokenizer_with(template), max_prompt_tokens=None, over_long="drop", template_options=options
    )
    return [prompt.text for prompt in found.prompts], found.warnings


def test_a_system_prompt_that_the_template_skips_is_said_once_with_its_number() -> None:
    asked = [sample(("system", "Be brief."), ("user", str(i)), id=f"train-{i:06d}") for i in range(3)]
    texts, warnings = rendered(USER_ONLY, sample(("user", "x")), *asked)
    assert texts == ["[x]", "[0]", "[1]", "[2]"]
    (warning,) = warnings
    assert "leaves out text of a system message (3 of 4 prompts, first train-000000)" in warning


def test_what_the_template_only_trims_or_wraps_is_not_left_out() -> None:
    wrapped = "{% for m in messages %}{{ m['content'].split() | join('\n') }}{% endfor %}"
    conversation = sample(("system", " Be\tbrief. "), ("user", "  6*7?\n\n<image> now "))
    assert rendered(USER_ONLY, sample(("user", "  6*7?\n")))[1] == ()
    assert rendered(wrapped, conversation)[1] == ()


@given(
    contents=st.lists(st.text(alphabet="ab \n", min_size=1).filter(str.strip), min_size=1, max_size=4),
    dropped=st.sets(st.integers(0, 3)),
)
def test_exactly_the_messages_that_a_template_drops_are_said(contents: list[str], dropped: set[int]) -> None:
    marked = [(("user", "system")[i in dropped], f"<{i}>{content}") for i, content in enumerate(contents)]
    lost = sum(role == "system" for role, _ in marked)
    _, warnings = rendered(USER_ONLY, *(sample(message, id=f"train-{i:06d}") for i, message in enumerate(marked)))
    assert len(warnings) == bool(lost)
    assert all(f"({lost} of {len(contents)} prompts" in warning for warning in warnings)


@pytest.mark.parametrize("tools", [[SEARCH], json.dumps([SEARCH])])
def test_tools_are_written_by_the_template(tools: object) -> None:
    texts, warnings = rendered(WITH_ALL, sample(("user", "hi"), tools=tools))
    assert '"search_web"' in texts[0]
    assert warnings == ()


@pytest.mark.parametrize("none", [None, [], "", " ", "[]", "null"])
def test_a_row_without_tools_has_none(none: object) -> None:
    assert rendered(WITH_ALL, sample(("user", "hi"), tools=none)) == (["hi\n<think>"], ())


def test_tools_that_the_template_does_not_write_are_said() -> None:
    _, warnings = rendered(USER_ONLY, sample(("user", "hi"), tools=[SEARCH]))
    assert "leaves out tools of the column tools (1 of 1 prompts" in warnings[0]


@pytest.mark.parametrize("tools", ["a hammer", 7, {"name": "f"}, ["search"], '{"name": "f"}'])
def test_tools_that_are_no_schemas_name_sample_and_column_and_how_to_keep_the_column(tools: object) -> None:
    with pytest.raises(DataError, match="sample train-000000: column tools: is a list of function schemas") as caught:
        rendered(WITH_ALL, sample(("user", "hi"), tools=tools))
    assert caught.value.hint is not None
    assert "--columns tools=row_tools" in caught.value.hint


@pytest.mark.parametrize("own", [{"enable_thinking": False}, '{"enable_thinking": false}'])
def test_a_rows_variables_win_over_those_of_the_recipe(own: object) -> None:
    texts, warnings = rendered(
        WITH_ALL, sample(("user", "a"), chat_template_kwargs=own), sample(("user", "b")), enable_thinking=True
    )
    assert texts == ["a\n", "b\n<think>"]
    assert warnings == ()


def test_a_variable_of_a_row_that_the_template_never_reads_is_said() -> None:
    _, warnings = rendered(WITH_ALL, sample(("user", "a"), chat_template_kwargs={"thinking": False, "unset": None}))
    assert "leaves out 'thinking' of the column chat_template_kwargs (1 of 1 prompts" in warnings[0]
    assert len(warnings) == 1


@pytest.mark.parametrize("name", ["messages", "conversation", "tokenize", "add_generation_prompt", "tools"])
def test_what_the_run_decides_is_no_variable_of_a_row(name: str) -> None:
    with pytest.raises(DataError, match=f"sample train-000000: '{name}' is not the chat template's to be given"):
        rendered(WITH_ALL, sample(("user", "a"), chat_template_kwargs={name: []}))


@pytest.mark.parametrize("value", ["no", 7, ["enable_thinking"], {1: 2}])
def test_variables_that_are_no_object_name_the_column(value: object) -> None:
    with pytest.raises(DataError, match="column chat_template_kwargs: is an object of the chat template's variables"):
        rendered(WITH_ALL, sample(("user", "a"), chat_template_kwargs=value))


def test_the_same_words_with_other_tools_are_another_question() -> None:
    plain, with_tools = sample(("user", "a")), sample(("user", "a"), tools=[SEARCH])
    assert prompt_key(plain) != prompt_key(with_tools)
    assert prompt_key(plain) == prompt_key(sample(("user", "a"), tools=None, solution="other"))

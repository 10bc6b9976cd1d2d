from __future__ import annotations

from typing import Any, cast

import pytest

from grpo_core.data.given import check_given, check_made
from grpo_core.errors import DataError
from grpo_core.types import ImageRef, Message, Sample

GOOD = Message(role="user", content="6*7?")


def given(**fields: Any) -> Sample:
    return Sample(**{"messages": (GOOD,), **fields})


def test_a_sample_and_none_pass_as_they_are() -> None:
    sample = given(columns={"a": [1]}, images=(ImageRef(source="a.png"),))
    assert check_given(sample, "acme/sums") is sample
    assert check_given(None, "acme/sums") is None


@pytest.mark.parametrize(
    ("sample", "fault"),
    [
        ({"messages": "hello"}, "gave {'messages': 'hello'}; it must give a Sample or None"),
        (given(messages="hello"), "gave a Sample with 'hello' as messages, not a tuple of Message"),
        (given(messages=[GOOD]), "gave a Sample with [Message(role='user', content='6*7?')] as messages, not a tuple"),
        (
            given(messages=({"role": "user", "content": "hi"},)),
            "with {'role': 'user', 'content': 'hi'} among its messages, not only Message",
        ),
        (given(messages=None), "with None as messages, not a tuple of Message"),
        (
            given(messages=(Message(role="user", content=cast(Any, None)),)),
            "with None as the content of a message, not a text",
        ),
        (given(messages=(Message(role=cast(Any, 1), content=""),)), "with 1 as the role of a message, not a text"),
        (given(columns=[("a", 1)]), "with [('a', 1)] as columns, not a mapping"),
        (given(columns={1: 2}), "with 1 as the name of a column, not a text"),
        (given(images="a.png"), "with 'a.png' as images, not a tuple of ImageRef"),
        (given(images=("a.png",)), "with 'a.png' among its images, not only ImageRef"),
    ],
)
def test_a_sample_of_other_parts_names_the_preprocessor_and_the_part(sample: object, fault: str) -> None:
    with pytest.raises(DataError) as caught:
        check_given(sample, "acme/sums")
    assert "the preprocessor 'acme/sums' gave " in caught.value.message
    assert fault in caught.value.message
    assert caught.value.hint


def test_a_row_that_is_no_mapping_names_source_and_row() -> None:
    assert check_made({"query": "a"}, "acme:rows", 1) == {"query": "a"}
    with pytest.raises(DataError, match=r"row 3 of 'acme:rows' has \['a'\] as columns, not a mapping"):
        check_made(["a"], "acme:rows", 3)
    with pytest.raises(DataError, match=r"row 1 of 'acme:rows' has 1 as the name of a column, not a text"):
        check_made({1: "a"}, "acme:rows", 1)

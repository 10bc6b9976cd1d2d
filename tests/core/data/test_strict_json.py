"""JSON by the letter of RFC 8259."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.data.strict_json import parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_what_json_writes_is_read_back(value: object) -> None:
    assert parse_json(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "b": 2, "a": 1}', 'the key "a" is there twice'),
        ('[{"a": NaN}]', "NaN is not JSON; write null"),
        ("-Infinity", "-Infinity is not JSON; write null"),
        ("1e999", "1e999 is too large a number"),
        ("{'a': 1}", "Expecting property name"),
    ],
)
def test_what_pythons_reader_would_let_through_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_json(text)

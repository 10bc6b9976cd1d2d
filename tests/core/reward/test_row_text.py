"""A row as a warning quotes it."""

from __future__ import annotations

import json

from grpo_core.reward.row_text import row_text
from tests.core.reward.making import sample


def test_the_question_and_every_column_with_a_value_stand_on_one_line() -> None:
    text = row_text(sample({"solution": "4\n2", "tests": None, "nums": [1, 2]}, question="6*7?"))
    assert json.loads(text) == {"prompt": "6*7?", "solution": "4\n2", "nums": [1, 2]}
    assert "\n" not in text


def test_long_values_are_cut() -> None:
    text = row_text(sample({"tests": list(range(1000))}, question="x" * 500))
    assert len(text) < 200
    assert text.count("…") == 2


def test_a_value_that_is_not_json_is_named_by_its_type() -> None:
    assert row_text(sample({"image": b"\x89PNG"})) == '{"prompt": "1+1?", "image": "bytes"}'

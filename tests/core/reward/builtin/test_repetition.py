"""repetition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from grpo_core.reward.builtin.options import RepetitionOptions
from grpo_core.reward.builtin.repetition import make
from grpo_core.types import BuildContext


def penalty(ids: list[int], **options: object) -> float:
    return make(RepetitionOptions.model_validate(options), BuildContext())(completion_ids=[ids])[0]


def test_the_penalty_is_the_share_of_ngrams_that_are_not_new() -> None:
    assert penalty([1, 2, 1, 2, 1, 2, 1, 2], ngram_size=2) == pytest.approx(-5 / 7)
    assert penalty([9] * 10) == pytest.approx(-7 / 8)
    assert penalty([1] * 6, ngram_size=2, max_penalty=-0.5) == pytest.approx(-0.4)


def test_a_completion_shorter_than_one_ngram_has_no_penalty() -> None:
    assert penalty([]) == 0.0
    assert penalty([1, 2]) == 0.0


@pytest.mark.parametrize(
    ("key", "value"), [("ngram_size", 0), ("max_penalty", 1.0), ("max_penalty", float("nan")), ("n", 1)]
)
def test_options_without_meaning_are_refused(key: str, value: float) -> None:
    with pytest.raises(ValidationError, match=key):
        RepetitionOptions.model_validate({key: value})


@given(st.lists(st.integers(0, 3), max_size=30), st.integers(1, 4))
def test_the_penalty_lies_between_its_maximum_and_0(ids: list[int], size: int) -> None:
    assert -1.0 < penalty(ids, ngram_size=size) <= 0.0

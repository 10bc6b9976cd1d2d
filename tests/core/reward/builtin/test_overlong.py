"""soft_overlong."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from grpo_core.reward.builtin.options import SoftOverlongOptions
from grpo_core.reward.builtin.overlong import make
from grpo_core.types import BuildContext


@pytest.mark.parametrize(
    ("length", "expected"),
    [(0, 0.0), (79, 0.0), (80, 0.0), (81, -0.05), (90, -0.5), (100, -1.0), (101, -1.0), (999, -1.0)],
)
def test_the_penalty_grows_over_the_cache_and_stays_at_minus_1(length: int, expected: float) -> None:
    reward = make(SoftOverlongOptions(max_length=100, cache_length=20), BuildContext())
    assert reward(completion_ids=[[1] * length]) == [pytest.approx(expected)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": 100, "cache_length": 0}, "cache_length"),
        ({"max_length": 0, "cache_length": 1}, "max_length"),
        ({"max_length": 10, "cache_length": 11}, "cache_length=11 is more than max_length=10"),
        ({"cache_length": 11}, "max_length"),
    ],
)
def test_options_without_meaning_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SoftOverlongOptions.model_validate(options)

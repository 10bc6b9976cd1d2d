"""Learning rates by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.backends import TrainerSettings
from grpo_core.trainer.schedule import learning_rate, warmup_length


def rates(total_updates: int, **settings: Any) -> list[float]:
    made = TrainerSettings(learning_rate=1.0, **settings)
    return [learning_rate(update, made, total_updates) for update in range(total_updates)]


def test_a_constant_schedule_has_the_peak_throughout() -> None:
    assert rates(3) == [1.0, 1.0, 1.0]


def test_a_warm_up_rises_in_equal_steps_and_none_is_zero() -> None:
    assert rates(6, warmup_updates=3) == pytest.approx([0.25, 0.5, 0.75, 1.0, 1.0, 1.0])


def test_a_linear_schedule_falls_to_what_would_be_zero_after_the_last_update() -> None:
    assert rates(4, schedule="linear") == pytest.approx([1.0, 0.75, 0.5, 0.25])
    assert rates(5, schedule="linear", warmup_updates=1) == pytest.approx([0.5, 1.0, 0.75, 0.5, 0.25])


def test_a_cosine_schedule_falls_slowly_then_fast_then_slowly() -> None:
    # 0.5 (1 + cos(pi k/4)) for k = 0..3
    assert rates(4, schedule="cosine") == pytest.approx([1.0, 0.853553, 0.5, 0.146447], abs=1e-6)


def test_past_the_end_the_rate_is_zero() -> None:
    settings = TrainerSettings(schedule="linear")
    assert learning_rate(10, settings, 10) == learning_rate(11, settings, 10) == 0.0


def test_a_warm_up_longer_than_the_run_only_rises() -> None:
    assert rates(3, schedule="cosine", warmup_updates=5) == pytest.approx([1 / 6, 2 / 6, 3 / 6])


def test_a_warm_up_share_is_rounded_to_whole_updates() -> None:
    assert warmup_length(TrainerSettings(warmup_share=0.1), 30) == 3
    assert warmup_length(TrainerSettings(warmup_share=0.1), 4) == 0
    assert warmup_length(TrainerSettings(warmup_updates=7), 30) == 7
    assert warmup_length(TrainerSettings(), 30) == 0


@given(
    total=st.integers(1, 200),
    share=st.floats(0, 1),
    schedule=st.sampled_from(["constant", "linear", "cosine"]),
)
def test_rates_stay_between_zero_and_the_peak(total: int, share: float, schedule: str) -> None:
    for rate in rates(total, warmup_share=share, schedule=schedule):
        assert 0.0 < rate <= 1.0

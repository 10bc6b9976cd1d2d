"""When checkpoints are written and which are kept, by the settings of a run."""

from __future__ import annotations

from typing import Any

import pytest

from grpo_core.recipe.saving import kept_count, kept_whatever, saving_words
from grpo_core.recipe.schema import RunSettings

ENDS = "at the end, and at the last whole step when the run fails"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, f"every 30 minutes, {ENDS}; the newest 2 and the last good one are kept"),
        ({"save_minutes": None}, f"{ENDS}; all are kept"),
        ({"save_minutes": 1}, f"every minute, {ENDS}; the newest 2 and the last good one are kept"),
        ({"save_minutes": 2.5}, f"every 2.5 minutes, {ENDS}; the newest 2 and the last good one are kept"),
        ({"save_steps": 1}, f"every step, {ENDS}; all are kept"),
        ({"save_steps": 1000}, f"every 1,000 steps, {ENDS}; all are kept"),
        (
            {"save_steps": 100, "save_total_limit": 3},
            f"every 100 steps, {ENDS}; the newest 3 and the last good one are kept",
        ),
        ({"save_total_limit": 1}, f"every 30 minutes, {ENDS}; the newest and the last good one are kept"),
        (
            {"save_steps": 100, "save_minutes": 30},
            f"every 100 steps and every 30 minutes, {ENDS}; those of every 100 steps, the newest 2 of the others and "
            "the last good one are kept",
        ),
    ],
)
def test_the_plan_says_when_checkpoints_are_written_and_which_are_kept(settings: dict[str, Any], words: str) -> None:
    assert saving_words(RunSettings(**settings)) == words


def test_who_counts_in_steps_gets_none_by_the_clock_unless_asked_for() -> None:
    assert RunSettings().save_minutes == 30
    assert RunSettings(save_steps=100).save_minutes is None
    assert RunSettings(save_steps=100, save_minutes=5).save_minutes == 5
    assert RunSettings(save_steps=None).save_minutes == 30


def test_only_what_the_clock_made_goes_by_itself() -> None:
    both = RunSettings(save_steps=100, save_minutes=30)
    assert kept_count(both) == 2
    assert [step for step in (50, 100, 137, 200) if kept_whatever(step, both)] == [100, 200]
    limited = RunSettings(save_steps=100, save_minutes=30, save_total_limit=5)
    assert kept_count(limited) == 5
    assert not kept_whatever(100, limited)
    assert kept_count(RunSettings(save_steps=100)) is None

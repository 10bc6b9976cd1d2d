"""Scores by row and control."""

from __future__ import annotations

from grpo_core.trial.grid import mean_of, score_grid
from grpo_core.types import Failed
from tests.core.trial.making import answers, scorer


def test_scores_stand_where_their_completions_do_and_gaps_stay_gaps() -> None:
    with scorer("contains") as made:
        written = [["1", None, "2"], [None, None, None], [None, "3", None]]
        assert score_grid(made, answers(1, 2, 3), written) == [[1.0, None, 0.0], [None] * 3, [None, 1.0, None]]


def test_a_mean_is_of_the_scores_there_are() -> None:
    assert mean_of([1.0, None, 0.0, Failed("x")]) == 0.5
    assert mean_of([None, Failed("x")]) is None

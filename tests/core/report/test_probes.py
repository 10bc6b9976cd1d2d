"""Probe answers of a run."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from grpo_core.report.probes import read_probes, steps_with_text
from tests.core.report.making import answer_row, opened


def test_all_scores_are_read_and_texts_as_far_as_they_fit(tmp_path: Path) -> None:
    files = {step: [answer_row(step, drawn="greedy", completion="x" * 1000)] for step in range(0, 50, 10)}
    run = opened(tmp_path / "run", probes=files)
    whole = read_probes(run, budget_bytes=10**6)
    assert [answer.step for answer in whole.answers] == [0, 10, 20, 30, 40]
    assert whole.with_text == frozenset(files)
    assert whole.text == ""
    part = read_probes(run, budget_bytes=3700)
    assert len(part.answers) == 5
    assert part.with_text == {0, 20, 40}
    assert part.text.startswith("The texts of 2 of 5 probes are left out to keep this file small")


def test_a_run_without_probes_has_none(tmp_path: Path) -> None:
    assert read_probes(opened(tmp_path / "run"), budget_bytes=100).answers == ()


@given(st.integers(1, 300), st.integers(1, 1000), st.integers(1, 10**6))
def test_texts_of_both_ends_are_always_there(steps: int, size: int, budget: int) -> None:
    chosen = steps_with_text(dict.fromkeys(range(steps), size), budget_bytes=budget)
    assert {0, steps - 1} <= set(chosen)
    assert len(chosen) * size <= max(budget, 2 * size)

"""Probe prompts: which, when, and that they are fixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.data.feed import Feed, PromptSet
from grpo_core.data.prompts import Prompt
from grpo_core.loop.prepare import Prepared
from grpo_core.loop.probes import probe_due, probe_prompts
from grpo_core.recipe.schema import RunSettings
from grpo_core.types import Message, Sample


def prompts(count: int, kind: str = "train") -> tuple[Prompt, ...]:
    def one(number: int) -> Prompt:
        sample = Sample(id=f"{kind}-{number:06d}", messages=(Message(role="user", content="?"),))
        return Prompt(sample=sample, text="?", token_ids=(1,))

    return tuple(map(one, range(count)))


def chosen(train: int, evaluation: int, **run: Any) -> list[str]:
    prepared = Prepared(
        feed=Feed([PromptSet(name="", weight=1, prompts=prompts(train))], prompts_per_step=1, seed=0),
        evaluation=prompts(evaluation, "evaluation"),
        columns=frozenset(),
        total_steps=10,
        fingerprint="",
        notes=(),
        warnings=(),
    )
    return [prompt.sample.id for prompt in probe_prompts(prepared, RunSettings(**run))]


def due(steps: Sequence[int], total_steps: int, **run: Any) -> list[int]:
    return [step for step in steps if probe_due(RunSettings(**run), step, total_steps=total_steps)]


def test_probes_are_evaluation_rows_where_there_are_any_spread_over_them() -> None:
    assert chosen(9, 8) == ["evaluation-000000", "evaluation-000002", "evaluation-000004", "evaluation-000006"]
    assert chosen(9, 0, probe_prompts=3) == ["train-000000", "train-000003", "train-000006"]


@pytest.mark.parametrize(("rows", "wanted", "expected"), [(3, 8, 3), (1, 4, 1), (5, 0, 0)])
def test_there_are_no_more_probes_than_rows(rows: int, wanted: int, expected: int) -> None:
    assert len(set(chosen(rows, 0, probe_prompts=wanted))) == expected


def test_probes_are_answered_before_the_first_step_every_so_many_and_after_the_last() -> None:
    assert due(range(8), 7, probe_every_steps=3) == [0, 3, 6, 7]
    assert due(range(8), 7, probe_every_steps=3, probe_prompts=0) == []


@given(st.integers(1, 3000))
def test_by_default_there_are_about_twenty_probes_whatever_the_length_of_the_run(total_steps: int) -> None:
    count = len(due(range(total_steps + 1), total_steps))
    assert count == total_steps + 1 if total_steps < 20 else 21 <= count <= 41

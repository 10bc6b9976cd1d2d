"""Runs whose completions are drawn one step ahead, by an engine with a copy of the weights."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.runs import completions_of, grpoctl, make_workplace, metrics_of, train_arguments

ENGINE = """
from grpo_core.api import RolloutSpec, hookimpl


@hookimpl
def grpo_rollout_backends():
    yield RolloutSpec(
        name="beside",
        summary="A copy of the weights, read by a thread of its own",
        target="grpo_core.rollout.backend:make",
        options="grpo_core.rollout.options:TransformersRolloutOptions",
        capabilities=frozenset({"weights:stream", "overlaps"}),
    )
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    make_workplace(tmp_path)
    (tmp_path / "engine.py").write_text(ENGINE, encoding="utf-8")
    return tmp_path


def arguments(output: str, *more: str, staleness: int = 1) -> list[str]:
    ahead = ("--set", f"rollout.max_staleness={staleness}")
    return train_arguments(output, "--plugin", "engine.py", "--rollout", "beside", *ahead, *more)


def staleness(run: Path) -> list[object]:
    return [row["sampler/staleness_max"] for row in metrics_of(run) if row["step"]]


def test_every_step_but_the_first_learns_from_completions_of_one_step_before(place: Path) -> None:
    grpoctl(place, *arguments("ahead", "--eval-rows", "2", "--eval-steps", "2"))
    grpoctl(place, *arguments("now", "--eval-rows", "2", "--eval-steps", "2", staleness=0))
    assert staleness(place / "ahead") == [0.0, 1.0, 1.0, 1.0]
    ahead, now = (completions_of(place / run) for run in ("ahead", "now"))
    assert [row["completion"] for row in ahead if row["step"] == 1] == [
        row["completion"] for row in now if row["step"] == 1
    ]
    assert [row["prompt"] for row in ahead] == [row["prompt"] for row in now]
    assert "sampler/staleness_max" not in metrics_of(place / "now")[0]


def test_the_importance_weights_are_those_of_the_recorded_log_probabilities(place: Path) -> None:
    grpoctl(place, *arguments("ahead"))
    gaps = [float(str(row["sampler/gap_max"])) for row in metrics_of(place / "ahead")]
    assert gaps[0] < 1e-4  # the same weights
    assert min(gaps[1:]) > 1e-3  # an update between them


def test_engine_and_trainer_are_compared_with_the_same_weights_before_every_step_that_follows(place: Path) -> None:
    grpoctl(place, *arguments("ahead"))
    grpoctl(place, *arguments("now", staleness=0))
    *before, last = metrics_of(place / "ahead")
    assert all(float(str(row["sampler/fresh_gap_max"])) < 1e-4 for row in before)
    assert "sampler/fresh_gap_max" not in last  # nothing is drawn after it
    assert "sampler/fresh_gap_max" not in metrics_of(place / "now")[0]


def test_a_resumed_run_loses_no_step(place: Path) -> None:
    grpoctl(place, *arguments("whole", "--save-steps", "2"))
    checkpoint = place / "whole" / "checkpoints" / "step-000002"
    for leftover in ("final",):
        subprocess.run(["rm", "-r", str(place / "whole" / leftover)], check=True)
    grpoctl(place, "resume", str(checkpoint))
    rows = metrics_of(place / "whole")
    assert [row["step"] for row in rows] == [1, 2, 3, 4]
    assert staleness(place / "whole") == [0.0, 1.0, 0.0, 1.0]  # step 3 was drawn anew
    assert len(completions_of(place / "whole")) == 4 * 12


def test_two_ranks_wait_for_each_other_before_the_engine_changes(place: Path) -> None:
    command = [sys.executable, "-m", "grpo_core", *arguments("two", "--nproc-per-node", "2")]
    subprocess.run(command, cwd=place, check=True, timeout=600)
    grpoctl(place, *arguments("one"))
    assert staleness(place / "two") == [0.0, 1.0, 1.0, 1.0]
    one, two = (completions_of(place / run) for run in ("one", "two"))
    assert [row["completion"] for row in one] == [row["completion"] for row in two]


def test_an_engine_in_the_trainers_process_cannot_be_ahead(place: Path) -> None:
    ran = grpoctl(place, *train_arguments("run", "--set", "rollout.max_staleness=1"), code=2)
    assert "'grpo-core/transformers' cannot generate while the trainer computes; leave it at 0" in ran.stderr

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grpo_core.api import BuildContext, PluginError
from grpo_trackers.options import TensorBoardOptions
from grpo_trackers.to_tensorboard import make
from tests.plugins.grpo_trackers.runs import outcome, report, started


def run(folder: Path, steps: dict[int, float], **how: Any) -> None:
    """One process's part of a run."""
    tracker = make(TensorBoardOptions(), BuildContext(run_dir=folder))
    tracker.grpo_run_started(started(folder, first_step=min(steps)))
    for step, mean in steps.items():
        tracker.grpo_step_finished(report(step, mean=mean, **how))
    tracker.grpo_run_finished(outcome(folder, steps=max(steps)))


def read(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(str(folder)).Reload()


def curve(folder: Path, name: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in read(folder / "trackers/tensorboard").Scalars(name)]


def test_numbers_and_evaluations_become_curves(tmp_path: Path) -> None:
    run(tmp_path, {1: 0.5, 2: 0.75}, evaluated=True)
    assert curve(tmp_path, "reward/mean") == [(1, 0.5), (2, 0.75)]
    assert curve(tmp_path, "eval/accuracy") == [(0, 0.25), (1, 0.75), (2, 0.75)]


def test_settings_and_completions_become_text(tmp_path: Path) -> None:
    run(tmp_path, {1: 0.5}, with_completions=True)
    found = read(tmp_path / "trackers/tensorboard")
    texts = {tag: found.Tensors(tag)[0].tensor_proto.string_val[0].decode() for tag in found.Tags()["tensors"]}
    assert "model.path | m" in texts["settings/text_summary"]
    assert "run.seed | 3" in texts["settings/text_summary"]
    assert "train-000001 | 6*7? | abc | 1.0" in texts["completions/text_summary"]
    assert texts["outcome/text_summary"] == "finished after 1 steps"


def test_after_a_resume_the_steps_done_again_replace_those_before(tmp_path: Path) -> None:
    run(tmp_path, {1: 0.125, 2: 0.25, 3: 0.5})
    run(tmp_path, {2: 0.75, 3: 1.0})
    assert curve(tmp_path, "reward/mean") == [(1, 0.125), (2, 0.75), (3, 1.0)]


def test_event_files_go_where_the_option_says(tmp_path: Path) -> None:
    tracker = make(TensorBoardOptions(directory=str(tmp_path / "events")), BuildContext())
    tracker.grpo_run_started(started(tmp_path / "run"))
    tracker.grpo_run_finished(outcome(tmp_path, steps=0))
    assert list((tmp_path / "events").iterdir())


def test_without_a_run_there_is_no_place_for_event_files() -> None:
    with pytest.raises(PluginError, match="needs a run's folder"):
        make(TensorBoardOptions(), BuildContext())

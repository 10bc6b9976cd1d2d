"""Opening a run's folder: what is no run is an error that says what to give; what is broken costs that part."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.errors import UsageError
from grpo_core.report.run import open_runs
from tests.core.report.making import answer_row, opened, plan_of, write_run

ONE_STEP = [{"step": 1, "reward/mean": 0.5}]


def refused(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        open_runs([path])
    return str(caught.value)


def test_a_run_has_its_plan_its_steps_and_its_files(tmp_path: Path) -> None:
    files = {2: [answer_row(2)], 1: [answer_row(1)]}
    run = opened(tmp_path / "run", [*ONE_STEP, {"step": 2}], plan=plan_of(), completions=files, probes={0: []})
    (tmp_path / "run/completions/notes.txt").touch()
    assert run.plan == plan_of()
    assert (run.name, run.steps, run.finished) == ("run", 2, False)
    assert [file.step for file in run.completions] == [1, 2]
    assert [file.step for file in run.probes] == [0]
    assert run.notes == []


def test_a_final_model_means_finished(tmp_path: Path) -> None:
    (tmp_path / "run" / "final").mkdir(parents=True)
    assert opened(tmp_path / "run").finished


def test_what_is_no_run_says_what_to_give(tmp_path: Path) -> None:
    write_run(tmp_path / "run", ONE_STEP)
    (tmp_path / "empty").mkdir()
    (tmp_path / "run" / "checkpoints" / "step-000001").mkdir(parents=True)
    (tmp_path / "run" / "checkpoints" / "step-000001" / "state.json").touch()
    assert "there is no folder" in refused(tmp_path / "missing")
    assert "neither plan.json nor metrics.jsonl" in refused(tmp_path / "empty")
    assert f"Give its folder: {tmp_path / 'run'}" in refused(tmp_path / "run" / "metrics.jsonl")
    assert f"Give the folder of its run: {tmp_path / 'run'}" in refused(tmp_path / "run/checkpoints/step-000001")


def test_a_run_without_a_whole_step_has_no_metrics_yet(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [], plan=plan_of())
    assert "has no metrics yet: no step is finished" in refused(run)
    (run / "metrics.jsonl").write_text('{"step": 1, "rew')
    assert "only half written" in refused(run)
    (run / "metrics.jsonl").unlink()
    assert "has no metrics yet" in refused(run)


def test_an_unreadable_plan_costs_the_settings_only(tmp_path: Path) -> None:
    (note,) = opened(tmp_path / "without").notes
    assert note.endswith("plan.json cannot be read: No such file or directory, so the settings are not shown")
    for content in ("{half", '{"core_version": "99"}', "[]"):
        run = write_run(tmp_path / "run", ONE_STEP)
        (run / "plan.json").write_text(content)
        (made,) = open_runs([run])
        assert made.plan is None
        assert made.notes[0].startswith(f"{run / 'plan.json'} is no plan that grpo-core ")


def test_lines_without_a_step_and_steps_that_are_there_twice_are_said(tmp_path: Path) -> None:
    rows = [{"step": 2, "a": 1}, {"a": 0}, {"step": True}, {"step": 1}, {"step": 2, "a": 3}]
    run = opened(tmp_path / "run", rows, plan=plan_of())
    assert run.rows == ({"step": 1}, {"step": 2, "a": 3})
    assert run.notes == [
        "metrics.jsonl: a line without a step was left out",
        "metrics.jsonl: a line without a step was left out",
        "metrics.jsonl: step 2 is there twice; the later line counts",
    ]


def test_runs_are_named_by_as_much_of_their_path_as_tells_them_apart(tmp_path: Path) -> None:
    for place in ("a/run", "b/run", "b/other"):
        write_run(tmp_path / place, ONE_STEP)
    runs = open_runs([tmp_path / place for place in ("a/run", "b/run", "b/other", "a/../a/run")])
    assert [run.name for run in runs] == ["a/run", "b/run", "b/other"]
    assert [run.name for run in open_runs([tmp_path / "a/run", tmp_path / "b/other"])] == ["run", "other"]

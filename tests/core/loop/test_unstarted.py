"""Where a new run may begin: an empty folder, and that of a run that failed before it had made anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.loop.lock import LOCK_FILE
from grpo_core.loop.records import Records
from grpo_core.loop.unstarted import holds_unstarted_run, refusal
from grpo_core.types import EvaluationReport
from tests.core.loop.make import step_report
from tests.core.report.making import plan_of


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    """What a run leaves that failed while its model was loaded."""
    run = tmp_path / "run"
    records = Records(run)
    records.write_plan(plan_of())
    return run


def test_an_empty_folder_or_none_is_free(tmp_path: Path) -> None:
    assert refusal(tmp_path) is None
    assert refusal(tmp_path / "none") is None
    (tmp_path / LOCK_FILE).touch()
    assert refusal(tmp_path) is None
    assert not holds_unstarted_run(tmp_path)


def test_a_run_that_made_nothing_gives_its_folder_up(failed: Path) -> None:
    for name in ("checkpoints", "weights", "trackers"):
        (failed / name).mkdir()
    (failed / "trackers" / "wandb.json").touch()
    (failed / "probes" / "step-000000.jsonl").touch()
    (failed / LOCK_FILE).touch()
    assert holds_unstarted_run(failed)
    assert refusal(failed) is None


def test_a_run_that_made_something_keeps_its_folder(failed: Path) -> None:
    for make in (
        lambda: Records(failed).write_evaluation(EvaluationReport(step=0, metrics={"eval/accuracy": 0.5})),
        lambda: (failed / "final").mkdir(),
        lambda: (failed / "best").mkdir(),
        lambda: (failed / "checkpoints" / "step-000001").mkdir(parents=True) or (failed / "checkpoints/x").touch(),
        lambda: Records(failed).write_step(step_report(1)),
    ):
        make()  # type: ignore[no-untyped-call]
        assert str(refusal(failed)).startswith(f"is not empty; `grpoctl resume {failed}` goes on with a run; for a new")
        for path in (failed / "final", failed / "best"):
            if path.exists():
                path.rmdir()
        (failed / "checkpoints" / "x").unlink(missing_ok=True)
        (failed / "metrics.jsonl").write_bytes(b"")


@pytest.mark.parametrize(
    "name", ["notes.txt", "metrics.damaged", "plan.json.bak", "completions/mine", "probes/step-000001.jsonl"]
)
def test_what_somebody_else_put_there_keeps_it(failed: Path, name: str) -> None:
    (failed / name).touch()
    assert refusal(failed) is not None


def test_a_folder_that_is_no_runs_is_refused_without_talk_of_a_resume(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    assert refusal(tmp_path) == "is not empty, and what is in it is no run's; choose another --output"
    (tmp_path / "precious").unlink()
    (tmp_path / "plan.json").write_text("{}", encoding="utf-8")  # somebody else's, or damaged
    assert str(refusal(tmp_path)).startswith("is not empty; `grpoctl resume")

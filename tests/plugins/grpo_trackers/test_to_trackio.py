from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from grpo_core.api import BuildContext
from grpo_trackers.options import TrackioOptions
from grpo_trackers.to_trackio import make
from tests.plugins.grpo_trackers.runs import outcome, report, started


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where trackio stores the project of a test; it reads its environment when it is imported, so by attribute."""
    from trackio import sqlite_storage

    monkeypatch.setattr(sqlite_storage, "TRACKIO_DIR", tmp_path / "trackio")
    return tmp_path / "trackio" / "mine.db"


def run(folder: Path, *steps: int) -> None:
    """One process's part of a run."""
    tracker = make(TrackioOptions(project="mine"), BuildContext(run_dir=folder))
    tracker.grpo_run_started(started(folder, first_step=steps[0]))
    for step in steps:
        tracker.grpo_step_finished(report(step, mean=step / 10, with_completions=step == 2, evaluated=step == 3))
    tracker.grpo_run_finished(outcome(folder, steps=steps[-1]))


def rows(database: Path, columns: str, table: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(database) as connection:
        return connection.execute(f"select {columns} from {table} order by id").fetchall()


def test_a_run_is_stored_with_its_settings(tmp_path: Path, database: Path) -> None:
    run(tmp_path / "countdown", 1, 2, 3)
    stored = [(step, json.loads(str(text, "utf-8"))) for step, text in rows(database, "step, metrics", "metrics")]  # type: ignore[arg-type]
    assert stored[0] == (0, {"eval/accuracy": 0.25})
    assert stored[1] == (1, {"reward/mean": 0.1})
    assert stored[2][1]["completions"]["_value"][0]["completion"] == "abc"
    assert stored[3] == (3, {"reward/mean": 0.3, "eval/accuracy": 0.75})
    ((name, config),) = rows(database, "run_name, config", "configs")
    assert name == "countdown"
    assert json.loads(str(config, "utf-8"))["run"]["seed"] == 3  # type: ignore[arg-type]


def test_a_resumed_run_goes_on_as_the_same_run_and_a_new_one_does_not(tmp_path: Path, database: Path) -> None:
    run(tmp_path / "countdown", 1, 2)
    run(tmp_path / "countdown", 2, 3)
    assert len(set(rows(database, "run_id", "metrics"))) == 1
    run(tmp_path / "elsewhere" / "countdown", 1)
    assert len(set(rows(database, "run_id", "metrics"))) == 2

"""metrics.jsonl and completions/: every step once, also after a resume."""

import json
import logging
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from grpo_core.errors import CheckpointError
from grpo_core.loop.records import Records, read_metrics
from grpo_core.types import EvaluationReport, Failed
from tests.core.loop.make import scored_group, step_report


def test_a_step_is_one_line_of_metrics_and_one_line_a_completion(tmp_path: Path) -> None:
    Records(tmp_path).write_step(step_report(3))
    assert read_metrics(tmp_path / "metrics.jsonl") == [{"step": 3, "reward/mean": 0.5}]
    rows = [json.loads(line) for line in (tmp_path / "completions/step-000003.jsonl").read_text().splitlines()]
    assert [(row["member"], row["total"], row["advantage"]) for row in rows] == [(0, 1.0, 0.7), (1, 0.0, -0.7)]
    assert rows[0]["scores"] == {"r": 1.0}
    assert rows[0]["columns"] == {"solution": "42"}


def test_a_failed_score_is_null_with_its_reason_beside_it(tmp_path: Path) -> None:
    group = scored_group([None], outcomes={"r": [Failed("it broke")]})
    Records(tmp_path).write_step(replace(step_report(), groups=(group,), advantages=((0.0,),)))
    row = json.loads((tmp_path / "completions/step-000001.jsonl").read_text())
    assert row["scores"] == {"r": None}
    assert row["failures"] == {"r": "it broke"}
    assert row["total"] is None


def test_an_evaluation_joins_the_line_of_its_step(tmp_path: Path) -> None:
    records = Records(tmp_path)
    evaluation = EvaluationReport(step=0, metrics={"eval/accuracy": 0.25})
    records.write_evaluation(evaluation)
    records.write_step(replace(step_report(1), evaluation=replace(evaluation, step=1)))
    lines = read_metrics(tmp_path / "metrics.jsonl")
    assert [(line["step"], line["eval/accuracy"]) for line in lines] == [(0, 0.25), (1, 0.25)]


def test_cutting_back_forgets_later_steps_and_half_a_line(tmp_path: Path) -> None:
    records = Records(tmp_path)
    for step in (1, 2, 3):
        records.write_step(step_report(step))
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "rew')
    records.cut_back(2)
    assert [line["step"] for line in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2]
    assert sorted(path.name for path in (tmp_path / "completions").iterdir()) == [
        "step-000001.jsonl",
        "step-000002.jsonl",
    ]


def test_text_of_any_language_survives(tmp_path: Path) -> None:
    group = scored_group([1.0], columns={"solution": "九"})
    Records(tmp_path).write_step(replace(step_report(), groups=(group,), advantages=((0.0,),)))
    assert "九" in (tmp_path / "completions/step-000001.jsonl").read_text(encoding="utf-8")


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The kernel lets no file grow beyond `size` bytes: a disk that is full, for files of this process only."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_metrics_that_cannot_be_written_wait_and_are_complete_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    records = Records(tmp_path)
    records.write_step(step_report(1))
    with largest_file(60), caplog.at_level(logging.WARNING, logger="grpo_core"):
        for step in (2, 3):
            records.write_step(step_report(step))
        assert [line["step"] for line in read_metrics(tmp_path / "metrics.jsonl")] == [1]
        with pytest.raises(CheckpointError, match=r"metrics.jsonl lacks the last 2 lines: File too large\s+free disk"):
            records.finish()
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "step-000002.jsonl cannot be written: File too large; the run goes on, files like it are lost" in told[0]
    assert "metrics.jsonl cannot be written: File too large; the run goes on, its lines wait until" in told[1]
    records.write_step(step_report(4))
    records.finish()
    assert [line["step"] for line in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2, 3, 4]
    assert not (tmp_path / "completions" / "step-000002.jsonl").exists()


def test_half_a_line_is_taken_back(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.write_step(step_report(1))
    size = (tmp_path / "metrics.jsonl").stat().st_size
    with largest_file(size + 5):
        records.write_step(step_report(2))
    assert (tmp_path / "metrics.jsonl").stat().st_size == size


def test_a_folder_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "completions").touch()
    with pytest.raises(CheckpointError, match=r"run cannot be written: File exists\s+free disk space, or make"):
        Records(tmp_path / "run")
    (tmp_path / "other" / "metrics.partial").mkdir(parents=True)
    with pytest.raises(CheckpointError, match=r"other cannot be written: Is a directory"):
        Records(tmp_path / "other").cut_back(0)


def test_a_lone_surrogate_survives(tmp_path: Path) -> None:
    group = scored_group([1.0], columns={"solution": "a\ud800"})
    Records(tmp_path).write_step(replace(step_report(), groups=(group,), advantages=((0.0,),)))
    row = json.loads((tmp_path / "completions/step-000001.jsonl").read_text(encoding="utf-8"))
    assert row["columns"] == {"solution": "a\ud800"}

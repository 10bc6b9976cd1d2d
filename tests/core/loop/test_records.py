"""metrics.jsonl and completions/: every step once, also after a resume."""

import json
import logging
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from grpo_core.errors import CheckpointError
from grpo_core.loop.lock import LOCK_FILE, hold
from grpo_core.loop.records import Records, read_metrics
from grpo_core.types import EvaluationReport, Failed
from tests.core.loop.make import scored_group, step_report
from tests.core.report.making import plan_of


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


DAMAGE = {
    b"nonsense": "is not JSON",
    b"\x00\x00\x00\xff": "is not JSON",
    b"[1, 2]": "is no JSON object",
    b'{"reward/mean": 1}': "has no step",
    b'{"step": "3"}': "has no step",
    b'{"step": -3}': "has no step",
    b'{"step": true}': "has no step",
    b"[" * 100_000: "is not JSON",
    b'{"step": 4, "reward/mean": 9}': "is of step 4, which comes again",
}


def damaged(folder: Path, data: bytes) -> Records:
    """Five steps, with a line that is none after the third."""
    records = Records(folder)
    for step in range(1, 6):
        records.write_step(step_report(step))
    lines = (folder / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_bytes(b"".join([*lines[:3], data + b"\n", *lines[3:]]))
    return records


@pytest.mark.parametrize(("data", "words"), DAMAGE.items(), ids=range(len(DAMAGE)))
def test_a_damaged_line_costs_no_good_line_and_is_kept_apart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, data: bytes, words: str
) -> None:
    damaged(tmp_path, data).cut_back(4)
    assert [line["step"] for line in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2, 3, 4]
    assert (tmp_path / "metrics.damaged").read_bytes() == data + b"\n"
    [told] = [record.getMessage() for record in caplog.records]
    assert told == f"{tmp_path}/metrics.jsonl is damaged: line 4 {words}; kept apart in {tmp_path}/metrics.damaged"


def test_who_only_reads_is_told_and_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    damaged(tmp_path, b"nonsense\nnonsense")
    before = (tmp_path / "metrics.jsonl").read_bytes()
    assert [line["step"] for line in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2, 3, 4, 5]
    assert "line 4 is not JSON, line 5 is not JSON; they are left out" in caplog.text
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


def test_metrics_that_are_no_file_are_an_error(tmp_path: Path) -> None:
    records = Records(tmp_path)
    (tmp_path / "metrics.jsonl").unlink()
    os.mkfifo(tmp_path / "metrics.jsonl")
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl cannot be read: it is a FIFO, not a file"):
        read_metrics(tmp_path / "metrics.jsonl")
    with pytest.raises(CheckpointError, match="it is a FIFO, not a file"):
        records.cut_back(0)


def test_half_a_last_line_is_dropped_without_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    records = damaged(tmp_path, b"nonsense")
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 6, "rew')
    records.cut_back(9)
    assert (tmp_path / "metrics.damaged").read_bytes() == b"nonsense\n"
    assert "line 7" not in caplog.text


def test_a_whole_last_line_that_only_lacks_its_end_is_kept(tmp_path: Path) -> None:
    records = Records(tmp_path)
    (tmp_path / "metrics.jsonl").write_bytes(b'{"step": 1}\n{"step": 2}')
    records.cut_back(9)
    records.write_step(step_report(3))
    assert [line["step"] for line in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2, 3]


def test_files_of_other_names_are_left_alone(tmp_path: Path) -> None:
    records = Records(tmp_path)
    for name in ("step-garbage.jsonl", "step-9.jsonl", "step-000009.jsonl", "step-000001.partial"):
        (tmp_path / "completions" / name).touch()
    records.cut_back(2)
    left = sorted(path.name for path in (tmp_path / "completions").iterdir())
    assert left == ["step-9.jsonl", "step-garbage.jsonl"]


@contextmanager
def held_run(folder: Path) -> Iterator[Records]:
    """The records of a run that holds its folder and made two steps."""
    folder.mkdir()
    with hold(folder) as lock:
        records = Records(folder, lock)
        records.write_plan(plan_of())
        for step in (1, 2):
            records.write_step(step_report(step))
        yield records


@pytest.mark.parametrize("lose", [shutil.rmtree, lambda run: run.rename(run.parent / "moved")])
def test_a_folder_that_is_lost_is_made_anew_and_what_is_missing_is_the_runs_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, lose: Callable[[Path], object]
) -> None:
    run = tmp_path / "run"
    with held_run(run) as records:
        lose(run)
        for step in (3, 4):
            records.write_step(step_report(step))
        with pytest.raises(CheckpointError) as caught:
            records.finish()
    told = "was removed or moved while the run went on, after step 2"
    assert [record.getMessage() for record in caplog.records] == [
        f"{run} {told}: the run goes on, in a folder made anew"
    ]
    assert f"{run} {told}: it lacks the completions, probes and checkpoints from before that" in caught.value.message
    assert caught.value.exit_code == 4
    assert [line["step"] for line in read_metrics(run / "metrics.jsonl")] == [1, 2, 3, 4]
    assert sorted(path.name for path in (run / "completions").iterdir()) == ["step-000003.jsonl", "step-000004.jsonl"]
    assert (run / "plan.json").read_text(encoding="utf-8") == plan_of().text()


def test_only_the_lock_or_only_metrics_removed_costs_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with held_run(tmp_path / "run") as records:
        (tmp_path / "run" / LOCK_FILE).unlink()
        records.write_step(step_report(3))
        (tmp_path / "run" / "metrics.jsonl").unlink()
        records.write_step(step_report(4))
        records.finish()
    assert [line["step"] for line in read_metrics(tmp_path / "run" / "metrics.jsonl")] == [1, 2, 3, 4]
    assert [record.getMessage() for record in caplog.records] == [
        f"somebody removed the lock of {tmp_path / 'run'}: it is taken again"
    ]


def test_another_run_in_its_place_is_not_touched(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with held_run(run) as records:
        run.rename(tmp_path / "moved")
        run.mkdir()
        plan_of().model_copy(update={"command": "another"}).write(run)
        with pytest.raises(CheckpointError, match="was replaced while the run went on, after step 2: has another run"):
            records.write_step(step_report(3))
        assert [path.name for path in run.iterdir()] == ["plan.json"]
        (run / "plan.json").unlink()
        with (
            hold(run),
            pytest.raises(CheckpointError, match=r"was replaced .* is being written by process") as caught,
        ):
            records.write_step(step_report(3))
    assert "what this run wrote is where its folder was moved to" in str(caught.value.hint)


def test_a_folder_that_cannot_be_made_anew_is_said_once_and_is_the_runs_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "deep").mkdir()
    with held_run(tmp_path / "deep" / "run") as records:
        shutil.rmtree(tmp_path / "deep")
        (tmp_path / "deep").touch()
        for step in (3, 4):
            records.write_step(step_report(step))
        with pytest.raises(CheckpointError, match=r"metrics\.jsonl lacks the last 4 lines: Not a directory"):
            records.finish()
    told = [record.getMessage() for record in caplog.records if "cannot be made anew" in record.getMessage()]
    assert len(told) == 1

"""`grpoctl rewards rescore`: the completions of a run, scored by other rewards or weights."""

from __future__ import annotations

import json
from pathlib import Path

from grpo_core.errors import DataError, GrpoError, UsageError
from tests.core.cli.rewards.running import error, facts, rewards
from tests.core.trial.making import REWARDS
from tests.core.trial.stored_run import make_run


def test_rescore_shows_means_before_and_after(tmp_path: Path) -> None:
    run = str(make_run(tmp_path))
    lines = rewards("rescore", run, "--reward-weights", "3").stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["step", "total", "totals", "changed", "exact"],
        ["1", "0.1667", "→", "0.5000", "1", "0.1667", "→", "0.1667"],
        ["2", "0.1667", "→", "0.5000", "1", "0.1667", "→", "0.1667"],
        ["all", "0.1667", "→", "0.5000", "2", "0.1667", "→", "0.1667"],
    ]


def test_rescore_writes_every_completion_and_leaves_the_run_alone(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    output = tmp_path / "out.jsonl"
    found = facts("rescore", str(run), "--rewards", f"{REWARDS}:length", "--step", "2", "-o", str(output))
    assert [step["step"] for step in found] == [2]
    assert found[0]["rewards"]["length"]["before"] is None
    assert found[0]["totals_changed"] == 6
    written = [json.loads(line) for line in output.read_bytes().split(b"\n")[:-1]]
    assert [row["total"] for row in written] == [18.0, 1.0, 25.0] * 2
    assert written[0]["old_scores"] == {"exact": 1.0}
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_rescore_overwrites_nothing_and_leaves_no_half_file(tmp_path: Path) -> None:
    run, output = make_run(tmp_path), tmp_path / "out.jsonl"
    output.write_text("mine", encoding="utf-8")
    assert "is there already" in error(UsageError, "rescore", str(run), "-o", str(output))
    assert output.read_text(encoding="utf-8") == "mine"
    assert "cannot be made: No such file or directory" in error(UsageError, "rescore", str(run), "-o", "/no/dir/x")
    (run / "completions" / "step-000002.jsonl").write_text("{", encoding="utf-8")
    error(DataError, "rescore", str(run), "-o", str(tmp_path / "half.jsonl"))
    assert not (tmp_path / "half.jsonl").exists()


def test_rescore_warns_of_failed_scores(tmp_path: Path) -> None:
    run = str(make_run(tmp_path))
    ran = rewards("rescore", run, "--rewards", f"{REWARDS}:not_finite")
    assert "warning: 12 scores failed; these completions have no total; first: returned nan" in ran.stderr
    assert " -" in ran.stdout


def test_rescore_of_what_is_no_run_is_an_error(tmp_path: Path) -> None:
    assert "cannot be read" in error(GrpoError, "rescore", str(tmp_path))

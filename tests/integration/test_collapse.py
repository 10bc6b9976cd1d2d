"""A run that collapses: a huge learning rate turns a random model's varied text into one token again and again, and the
reward, which pays for variety, is gone. For the first steps everything is paid the same, so the weights stay."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pytest

from tests.integration.runs import grpoctl, make_workplace, metrics_of

REWARD = '''
def variety(completion_ids, step):
    """The share of different tokens; 0.95 for everyone at first, which teaches nothing."""
    return [0.95 if step <= 12 else len(set(ids)) / len(ids) for ids in completion_ids]
'''
ARGUMENTS = (
    *("train", "--model", "./model", "--dataset", "rows.jsonl", "--rewards", "./variety.py:variety"),
    *("--steps", "28", "--prompts-per-step", "2", "--completions-per-prompt", "4", "--max-completion-tokens", "16"),
    *("--learning-rate", "1", "--seed", "3", "--save-steps", "4", "--set", "run.probe_prompts=0"),
)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if ": a collapse: " in record.getMessage()]


def test_a_collapse_is_said_once_and_the_last_good_checkpoint_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_workplace(tmp_path)
    (tmp_path / "variety.py").write_text(REWARD, encoding="utf-8")
    watcher = tmp_path / "watcher.py"
    watcher.write_text(
        "import json\nfrom grpo_core.api import hookimpl\n\n\n@hookimpl\ndef grpo_step_finished(report):\n"
        f"    with open({str(tmp_path / 'seen')!r}, 'a') as file:\n"
        "        print(json.dumps(report.metrics['health/collapse']), file=file)\n",
        encoding="utf-8",
    )
    with caplog.at_level(logging.WARNING, logger="grpo_core"):
        grpoctl(tmp_path, *ARGUMENTS, "--output", "run", "--save-total-limit", "1", "--plugin", "watcher.py")
    flags = [row["health/collapse"] for row in metrics_of(tmp_path / "run")]
    begins = flags.index(1.0) + 1
    assert begins > 13
    assert flags == [0.0] * (begins - 1) + [1.0] * (28 - begins + 1)
    (warning,) = told(caplog)
    assert warning.startswith(f"step {begins}: a collapse: reward/mean fell from 0.952 (step 13) to ")
    assert (
        "Go on from run/checkpoints/step-000012, which is kept, with a lower trainer.learning_rate (1); if" in warning
    )
    kept = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert kept == ["step-000012", "step-000028"]
    assert [json.loads(line) for line in (tmp_path / "seen").read_text().splitlines()] == flags


def test_a_run_resumed_in_a_collapse_goes_on_in_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_workplace(tmp_path)
    (tmp_path / "variety.py").write_text(REWARD, encoding="utf-8")
    grpoctl(tmp_path, *ARGUMENTS, "--output", "whole")
    caplog.clear()
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    shutil.rmtree(tmp_path / "cut" / "final")
    shutil.rmtree(tmp_path / "cut" / "checkpoints" / "step-000028")
    rows = metrics_of(tmp_path / "whole")
    assert rows[23]["health/collapse"] == 1.0  # the checkpoint it goes on from
    with caplog.at_level(logging.WARNING, logger="grpo_core"):
        grpoctl(tmp_path, "resume", "cut")
    assert metrics_of(tmp_path / "cut") == rows
    assert told(caplog) == []

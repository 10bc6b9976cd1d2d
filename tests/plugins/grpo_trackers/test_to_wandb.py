from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from grpo_core.api import BuildContext
from grpo_trackers.options import WandbOptions
from grpo_trackers.to_wandb import make
from tests.plugins.grpo_trackers.runs import outcome, report, started, wandb_begun, wandb_history, wandb_numbers


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No account, no network, nothing outside the test's folder."""
    for name in ("WANDB_API_KEY", "WANDB_PROJECT", "WANDB_NAME", "WANDB_DIR", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WANDB_SILENT", "true")
    for name in ("CACHE", "CONFIG", "DATA", "ARTIFACT"):
        monkeypatch.setenv(f"WANDB_{name}_DIR", str(tmp_path / "home" / name))


def run(folder: Path, *steps: int, interrupted: bool = False, **options: object) -> None:
    """One process's part of a run."""
    tracker = make(WandbOptions.model_validate({"mode": "offline", **options}), BuildContext(run_dir=folder))
    tracker.grpo_run_started(started(folder, first_step=steps[0]))
    for step in steps:
        tracker.grpo_step_finished(report(step, mean=step / 10, with_completions=step == 2, evaluated=step == 3))
    tracker.grpo_run_finished(outcome(folder, steps=steps[-1], interrupted=interrupted))


def test_a_run_is_written_to_its_own_folder(tmp_path: Path) -> None:
    folder = tmp_path / "countdown"
    run(folder, 1, 2, 3, project="mine", tags=["first"])
    history = wandb_history(folder / "trackers")
    assert history[0] == {"step": 0, "eval/accuracy": 0.25}
    assert history[1] == {"step": 1, "reward/mean": 0.1}
    assert history[2]["completions/nrows"] == 2
    assert history[3] == {"step": 3, "reward/mean": 0.3, "eval/accuracy": 0.75}
    begun = wandb_begun(folder)
    assert (begun.project, begun.display_name, list(begun.tags)) == ("mine", "countdown", ["first"])
    config = {update.key: json.loads(update.value_json) for update in begun.config.update}
    assert config["model"] == {"path": "m"}
    (table,) = folder.rglob("completions_*.table.json")
    assert json.loads(table.read_text())["data"][0][:5] == [2, "train-000001", "6*7?", "abc", 1.0]


def test_a_resumed_run_goes_on_as_the_same_run(tmp_path: Path) -> None:
    folder = tmp_path / "countdown"
    run(folder, 1, 2, interrupted=True, project="mine")
    first = wandb_begun(folder)
    shutil.rmtree(folder / "trackers" / "wandb")  # its folders are named by the second
    run(folder, 2, 3, project="other")
    second = wandb_begun(folder)
    assert (second.run_id, second.project) == (first.run_id, "mine")
    assert [row["step"] for row in wandb_history(folder)] == [2, 3]


def test_the_parts_of_an_offline_run_are_numbered_on_as_one(tmp_path: Path) -> None:
    """Step 0 (an evaluation), 1 and 2; then 2 again and 3: whoever sends both parts has five rows and not three."""
    folder = tmp_path / "countdown"
    run(folder, 1, 2, interrupted=True)
    assert wandb_numbers(folder) == [0, 1, 2]
    shutil.rmtree(folder / "trackers" / "wandb")
    run(folder, 2, 3)
    assert wandb_numbers(folder) == [3, 4]


def test_the_project_may_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_PROJECT", "from-the-environment")
    run(tmp_path / "run", 1)
    assert json.loads((tmp_path / "run/trackers/wandb.json").read_text())["project"] == "from-the-environment"


def test_without_a_key_the_run_is_told(tmp_path: Path) -> None:
    import wandb

    tracker = make(WandbOptions(mode="online"), BuildContext(run_dir=tmp_path))
    with pytest.raises(wandb.errors.UsageError, match="API key"):
        tracker.grpo_run_started(started(tmp_path))
    tracker.grpo_run_finished(outcome(tmp_path, steps=0))

"""A stopped and resumed run gives the numbers of an uninterrupted one, bit by bit (times aside)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from tests.integration.runs import completions_of, grpoctl, make_workplace, metrics_of, train_arguments

SAVING = ("--save-steps", "2", "--eval-rows", "2", "--eval-steps", "2")


def cut_to_step_two(run: Path, copy: Path) -> None:
    """What a kill during step 4 leaves: the checkpoint of step 2, records up to step 3."""
    shutil.copytree(run, copy)
    shutil.rmtree(copy / "final")
    shutil.rmtree(copy / "checkpoints" / "step-000004")
    lines = (copy / "metrics.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (copy / "metrics.jsonl").write_text("".join(lines[:-1]) + lines[-1][:20], encoding="utf-8")


@pytest.mark.parametrize(("precision", "shared_prefix"), [("fp32", "require"), ("bf16", "require"), ("fp32", "off")])
def test_a_resumed_run_is_bit_identical(tmp_path: Path, precision: str, shared_prefix: str) -> None:
    make_workplace(tmp_path)
    extra = ("--beta", "0.05", "--num-iterations", "2", "--precision", precision)
    extra += ("--set", f"trainer.shared_prefix={shared_prefix}")
    grpoctl(tmp_path, *train_arguments("whole", *SAVING, *extra))
    cut_to_step_two(tmp_path / "whole", tmp_path / "cut")
    done = grpoctl(tmp_path, "resume", "cut")
    assert "finished after 4 steps" in done.stdout
    assert metrics_of(tmp_path / "cut") == metrics_of(tmp_path / "whole")
    assert completions_of(tmp_path / "cut") == completions_of(tmp_path / "whole")
    whole = (tmp_path / "whole/final/model.safetensors").read_bytes()
    assert (tmp_path / "cut/final/model.safetensors").read_bytes() == whole


def test_a_resumed_run_computes_with_as_many_threads_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    make_workplace(tmp_path)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        grpoctl(tmp_path, *train_arguments("whole", *SAVING))
        cut_to_step_two(tmp_path / "whole", tmp_path / "cut")
        torch.set_num_threads(1)
        grpoctl(tmp_path, "resume", "cut")
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    state = json.loads((tmp_path / "cut/checkpoints/step-000004/state.json").read_text(encoding="utf-8"))
    assert (state["threads"], state["processes"]) == (3, 1)
    assert metrics_of(tmp_path / "cut") == metrics_of(tmp_path / "whole")


def test_a_run_killed_before_its_first_checkpoint_starts_anew(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("whole"))
    run = tmp_path / "cut"
    shutil.copytree(tmp_path / "whole", run)
    shutil.rmtree(run / "final")
    shutil.rmtree(run / "checkpoints")
    grpoctl(tmp_path, "resume", "cut")
    assert metrics_of(run) == metrics_of(tmp_path / "whole")


def test_a_changed_dataset_is_refused_unless_told(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("whole", *SAVING))
    cut_to_step_two(tmp_path / "whole", tmp_path / "cut")
    rows = (tmp_path / "rows.jsonl").read_text(encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text(rows.replace("Say 3", "Say three"), encoding="utf-8")
    done = grpoctl(tmp_path, "resume", "cut", code=2)
    assert "its rows changed" in done.stderr
    assert "--allow-changes" in done.stderr
    grpoctl(tmp_path, "resume", "cut", "--allow-changes")


def test_a_changed_plugin_version_is_refused_unless_told(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("whole", *SAVING))
    cut_to_step_two(tmp_path / "whole", tmp_path / "cut")
    plan = json.loads((tmp_path / "cut/plan.json").read_text(encoding="utf-8"))
    plan["trainer"]["version"] = "0.0.1"
    (tmp_path / "cut/plan.json").write_text(json.dumps(plan), encoding="utf-8")
    done = grpoctl(tmp_path, "resume", "cut", code=3)
    assert "grpo-core 0.0.1 is now" in done.stderr
    grpoctl(tmp_path, "resume", "cut", "--allow-changes")


def test_what_is_not_a_run_or_already_finished_is_refused(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    (tmp_path / "empty").mkdir()
    assert "neither a run's folder" in grpoctl(tmp_path, "resume", "empty", code=2).stderr
    for command in ("resume", "eval"):
        assert "there is no folder missing" in grpoctl(tmp_path, command, "missing", code=2).stderr
        refused = grpoctl(tmp_path, command, "model", code=2).stderr
        assert "it holds a model" in refused
        assert "grpoctl eval --model model --dataset" in refused
    grpoctl(tmp_path, *train_arguments("whole"))
    assert "nothing is left to train" in grpoctl(tmp_path, "resume", "whole", code=2).stderr


def test_a_run_folder_with_something_in_it_is_not_overwritten(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "precious").touch()
    done = grpoctl(tmp_path, *train_arguments("run"), code=2)
    assert "is not empty" in done.stderr


def test_a_run_goes_on_with_other_settings_when_told(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("whole", *SAVING))
    cut_to_step_two(tmp_path / "whole", tmp_path / "cut")
    change = ("--set", "trainer.learning_rate=1e-3", "--set", "trainer.max_grad_norm=0.5")
    grpoctl(tmp_path, "resume", "cut/checkpoints/step-000002", *change)
    rates = [row.get("trainer/learning_rate") for row in metrics_of(tmp_path / "cut")]
    assert rates == [None, 1e-2, 1e-2, 1e-3, 1e-3]
    card = (tmp_path / "cut/final/README.md").read_text(encoding="utf-8")
    assert "$ grpoctl resume cut/checkpoints/step-000002 --set trainer.learning_rate=1e-3" in card
    assert "| largest gradient norm | 0.5 |" in card
    wrong = grpoctl(tmp_path, "resume", "cut", "--set", "trainer.learning_rte=1", code=2)
    assert "nothing is left to train" in wrong.stderr


def test_a_wrong_change_leaves_the_run_as_it_was(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("whole", *SAVING))
    cut_to_step_two(tmp_path / "whole", tmp_path / "cut")
    before = (tmp_path / "cut/plan.json").read_text(encoding="utf-8")
    misspelt = grpoctl(tmp_path, "resume", "cut", "--set", "trainer.learning_rte=1", code=2)
    assert "did you mean 'learning_rate'?" in misspelt.stderr
    other_rows = grpoctl(tmp_path, "resume", "cut", "--set", "dataset.use=rows.jsonl#5", code=2)
    assert "its rows changed" in other_rows.stderr
    assert (tmp_path / "cut/plan.json").read_text(encoding="utf-8") == before


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_change_that_the_checkpoint_does_not_fit_loses_nothing(
    tmp_path: Path, processes: int, capfd: pytest.CaptureFixture[str]
) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("run", *SAVING))
    run = tmp_path / "run"
    shutil.rmtree(run / "final")
    before = contents(run)
    resume = ("resume", "run/checkpoints/step-000002", "--nproc-per-node", str(processes))
    refused = grpoctl(tmp_path, *resume, "--set", "trainer.lora.rank=2", code=4)
    assert "weight the model does not know" in refused.stderr + capfd.readouterr().err
    assert contents(run) == before
    grpoctl(tmp_path, *resume, "--set", "trainer.learning_rate=1e-3")
    assert [row.get("trainer/learning_rate") for row in metrics_of(run)] == [None, 1e-2, 1e-2, 1e-3, 1e-3]


def contents(folder: Path) -> dict[str, bytes]:
    """All files below it."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}

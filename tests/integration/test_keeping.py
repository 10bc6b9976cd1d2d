"""What a run leaves: the best model, a final one that says how it was made; and a disk that is full meanwhile."""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.runs import completions_of, grpoctl, make_workplace, metrics_of, train_arguments

EVALUATED = ("--eval-rows", "2", "--eval-steps", "1")


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The kernel lets no file grow beyond `size` bytes: weights fail, short files do not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_the_best_model_is_kept_apart_and_loads(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    make_workplace(tmp_path)
    name = "eval/sampled_reward_mean"
    settings = ("--save-best", name, "--set", "evaluation.samples=6", "--save-total-limit", "1")
    grpoctl(tmp_path, *train_arguments("run", *EVALUATED, *settings))
    values = {int(str(row["step"])): float(str(row[name])) for row in metrics_of(tmp_path / "run")}
    note = json.loads((tmp_path / "run" / "best" / "best.json").read_text())
    assert note == {"step": max(values, key=lambda step: values[step]), "metric": name, "value": max(values.values())}
    assert note["step"] > 0
    AutoModelForCausalLM.from_pretrained(tmp_path / "run" / "best")


def test_a_misspelt_metric_of_the_best_model_is_refused_before_the_first_step(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    done = grpoctl(tmp_path, *train_arguments("run", *EVALUATED, "--save-best", "eval/reward_maen"), code=2)
    assert "run.save_best: no evaluation has 'eval/reward_maen'; did you mean 'eval/reward_mean'?" in done.stderr
    assert "(--save-best)" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_metric_that_this_runs_evaluation_lacks_is_refused_before_the_first_step(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    done = grpoctl(tmp_path, *train_arguments("run", *EVALUATED, "--save-best", "eval/rewards/vowel/mean"), code=2)
    message = (
        "run.save_best: the evaluation of this run has no 'eval/rewards/vowel/mean'; did you mean 'eval/rewards/vow"
    )
    assert message in done.stderr
    assert [row["step"] for row in metrics_of(tmp_path / "run")] == [0]


def test_the_final_model_has_a_card_of_how_it_was_made(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("run", *EVALUATED, "--beta", "0.01"))
    card = (tmp_path / "run" / "final" / "README.md").read_text(encoding="utf-8")
    first, last = (row for row in metrics_of(tmp_path / "run") if row["step"] in (0, 4))
    assert f"| `eval/reward_mean` | {first['eval/reward_mean']:.3f} | {last['eval/reward_mean']:.3f} |" in card
    assert "| `vowels` | 1 | mine.py:vowels |" in card
    assert "| KL | beta 0.01 |" in card
    assert "$ grpoctl train --model ./model --dataset rows.jsonl" in card
    assert str(tmp_path) not in card


def test_a_full_disk_costs_no_training_and_the_run_can_be_finished_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("whole", "--save-steps", "2"))
    with largest_file(60_000):
        done = grpoctl(tmp_path, *train_arguments("full", "--save-steps", "2"), code=4)
    assert "step-000004 cannot be written" in done.stderr
    assert "final cannot be written" in done.stderr
    assert "`grpoctl resume" in done.stderr
    told = [record.getMessage() for record in caplog.records if "the run goes on" in record.getMessage()]
    assert [line.split(":")[0] for line in told] == ["step 2", "step 4", "step 4"]
    assert metrics_of(tmp_path / "full") == metrics_of(tmp_path / "whole")
    assert not list((tmp_path / "full").rglob(".partial-*"))
    grpoctl(tmp_path, "resume", "full")
    assert metrics_of(tmp_path / "full") == metrics_of(tmp_path / "whole")
    assert completions_of(tmp_path / "full") == completions_of(tmp_path / "whole")
    weights = "final/model.safetensors"
    assert (tmp_path / "full" / weights).read_bytes() == (tmp_path / "whole" / weights).read_bytes()


def test_a_run_that_was_killed_between_its_last_step_and_its_model_is_finished_by_a_resume(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("run", *EVALUATED))
    card = (tmp_path / "run" / "final" / "README.md").read_text(encoding="utf-8")
    rows = metrics_of(tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "final")
    done = grpoctl(tmp_path, "resume", "run")
    assert "finished after 4 steps" in done.stdout
    assert metrics_of(tmp_path / "run") == rows
    assert (tmp_path / "run" / "final" / "README.md").read_text(encoding="utf-8") == card


def test_going_on_from_an_older_checkpoint_forgets_what_came_after(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("run", "--save-steps", "1", "--save-total-limit", "3"))
    refused = grpoctl(tmp_path, "resume", "run/checkpoints/step-000002", code=2)
    assert "nothing is left to train" in refused.stderr
    assert "copy the run's folder without final/" in refused.stderr
    rows = metrics_of(tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "final")
    (tmp_path / "run" / "checkpoints" / "step-000004" / "stale").touch()
    grpoctl(tmp_path, "resume", "run/checkpoints/step-000002")
    assert metrics_of(tmp_path / "run") == rows
    names = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert names == ["step-000002", "step-000003", "step-000004"]
    assert not list((tmp_path / "run").rglob("stale"))

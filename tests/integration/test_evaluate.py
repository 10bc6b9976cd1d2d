"""`grpoctl eval`: a run's newest weights, or a model that was never trained here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.runs import grpoctl, make_workplace, metrics_of, train_arguments


def test_a_run_is_evaluated_as_it_evaluated_itself_at_its_end(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("run", "--eval-rows", "3"))
    done = grpoctl(tmp_path, "eval", "run", "--json")
    last = {name: value for name, value in metrics_of(tmp_path / "run")[-1].items() if name.startswith("eval/")}
    assert json.loads(done.stdout) == pytest.approx(last)


def test_a_model_is_evaluated_on_all_rows_of_a_dataset(tmp_path: Path) -> None:
    make_workplace(tmp_path, rows=5)
    flags = ("--model", "./model", "--dataset", "rows.jsonl", "--rewards", "./mine.py:vowels")
    done = grpoctl(tmp_path, "eval", *flags, "--max-completion-tokens", "8", "--json")
    assert json.loads(done.stdout)["eval/prompts"] == 5
    assert "eval/accuracy" not in json.loads(done.stdout)


def test_success_and_pass_at_k_count_the_reward_that_is_named(tmp_path: Path) -> None:
    make_workplace(tmp_path, rows=5)
    (tmp_path / "even.py").write_text("def even(wanted):\n    return [float(w == 0) for w in wanted]\n")
    flags = ("--model", "./model", "--dataset", "rows.jsonl", "--rewards", "./even.py:even")
    more = ("--samples", "3", "--pass-at", "1,3", "--set", "evaluation.success=even", "--max-completion-tokens", "4")
    found = json.loads(grpoctl(tmp_path, "eval", *flags, *more, "--json").stdout)
    assert found["eval/accuracy"] == pytest.approx(3 / 5)  # rows 0, 2 and 4 of 0..4
    assert found["eval/pass@1"] == found["eval/pass@3"] == pytest.approx(3 / 5)


def test_a_run_without_evaluation_rows_says_how_to_name_some(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("run"))
    done = grpoctl(tmp_path, "eval", "run", code=2)
    assert "has no evaluation rows" in done.stderr
    assert "--eval-dataset" in done.stderr
    grpoctl(tmp_path, "eval", "run", "--eval-dataset", "rows.jsonl#2")

"""A run's completions scored again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grpo_core.errors import DataError, RecipeError, RewardError
from grpo_core.loop.records import read_metrics
from grpo_core.recipe.plan import LaunchPlan, PlannedReward
from grpo_core.trial.rescore import Rescored, Score, moments_of, open_rescoring
from grpo_core.trial.stored import step_files
from tests.core.trial.making import SETTINGS, planned
from tests.core.trial.stored_run import make_run
from tests.tiny_models import make_model_folder


def rescored(run: Path, *rewards: PlannedReward) -> list[Rescored]:
    with open_rescoring(LaunchPlan.read(run), run, rewards, SETTINGS, step_files(run)) as steps:
        return list(steps)


def test_the_same_rewards_give_what_the_run_gave(tmp_path: Path) -> None:
    for step in rescored(make_run(tmp_path), planned("exact")):
        assert step.rewards == {"exact": Score(before=1 / 6, after=1 / 6)}
        assert step.total == Score(before=1 / 6, after=1 / 6)
        assert (step.changed, step.failure, step.differing) == (0, None, 0)


def test_other_weights_change_totals_and_no_score(tmp_path: Path) -> None:
    step = rescored(make_run(tmp_path), planned("exact", weight=3.0))[0]
    assert step.total == Score(before=1 / 6, after=0.5)
    assert step.rewards["exact"].before == step.rewards["exact"].after
    assert step.changed == 1


def test_a_reward_that_the_run_did_not_have_has_no_mean_before(tmp_path: Path) -> None:
    step = rescored(make_run(tmp_path), planned("length"), planned("exact", weight=0.0))[0]
    assert step.rewards["length"].before is None
    assert step.rewards["length"].after == pytest.approx((18 + 1 + 25) / 3)


def test_rows_have_new_and_old_scores_and_no_advantage(tmp_path: Path) -> None:
    row: dict[str, Any] = dict(rescored(make_run(tmp_path), planned("everything"))[0].rows[0])
    assert row["scores"] == {"everything": 0.5}
    assert row["records"] == {"letters": 18}
    assert (row["total"], row["old_scores"], row["old_total"]) == (0.5, {"exact": 1.0}, 1.0)
    assert "advantage" not in row
    assert row["completion"] == "<answer>1</answer>"


def test_failures_are_counted_and_have_no_total(tmp_path: Path) -> None:
    step = rescored(make_run(tmp_path), planned("first_of_batch", columns={"solution": "solution"}, deadline_s=1e-9))[0]
    assert step.rewards["first_of_batch"] == Score(before=None, after=None, failed=6)
    assert step.total.after is None
    assert step.failure is not None
    assert "took longer than its deadline" in step.failure


def test_rewards_hear_where_the_run_stood(tmp_path: Path) -> None:
    first, second = rescored(make_run(tmp_path), planned("moment"))
    assert first.rewards["moment"].after == 0.0 + 10 * 1 / 4
    assert second.rewards["moment"].after == 0.25 + 10 * 2 / 4
    assert first.rows[0]["records"] == {"max_steps": 4}


def test_a_run_that_counts_epochs_has_as_many_steps_as_its_rows_make(tmp_path: Path) -> None:
    run = make_run(tmp_path, total_steps=None)
    plan = LaunchPlan.read(run)
    assert moments_of(plan, read_metrics(run / "metrics.jsonl"), 2)(1).max_steps == 4
    assert moments_of(plan, [], 2)(2).progress == 1.0


def test_tokens_are_those_of_the_runs_tokenizer(tmp_path: Path) -> None:
    make_model_folder(tmp_path / "model")
    run = make_run(tmp_path, steps=1, model=str(tmp_path / "model"))
    (step,) = rescored(run, planned("tokens"))
    assert step.rewards["tokens"].after is not None
    assert step.differing > 0


def test_a_tokenizer_that_is_gone_is_an_error_where_tokens_are_read(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no such folder"):
        rescored(make_run(tmp_path, model="./gone"), planned("tokens"))


def test_chat_messages_are_not_recorded(tmp_path: Path) -> None:
    with pytest.raises(RewardError, match="reward 'chat' reads messages, and a run records only the rendered prompt"):
        rescored(make_run(tmp_path), planned("chat"))


def test_a_reward_that_needs_another_column_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RewardError, match="its parameter 'nums' is neither a dataset column nor"):
        rescored(make_run(tmp_path), planned("equation"))


def test_a_damaged_step_is_an_error_when_it_is_reached(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    (run / "completions" / "step-000002.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"step-000002\.jsonl line 1: is not valid JSON"):
        rescored(run, planned("exact"))

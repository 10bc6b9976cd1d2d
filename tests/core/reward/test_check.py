"""What is wrong with a run's rewards is found at launch, all of it at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from grpo_core.errors import BrokenReference, GrpoError, PluginError, RewardError
from grpo_core.reward.check import check_rewards, claim_warnings
from grpo_core.types import BuildContext
from tests.core.reward.making import planned, sample


def problems(*rewards: object, columns: tuple[str, ...] = ()) -> str:
    with pytest.raises(GrpoError) as caught:
        check_rewards(rewards, columns, BuildContext())  # type: ignore[arg-type]
    return str(caught.value)


def test_good_rewards_come_back_bound() -> None:
    first, second = check_rewards([planned("length"), planned("solves")], ["solution"], BuildContext())
    assert first.binding.columns == {}
    assert second.binding.columns == {"solution": "solution"}


def test_all_problems_are_named_at_once() -> None:
    message = problems(planned("solves"), planned("nothing"), planned("by_star"), columns=("answer", "step"))
    assert message.startswith("4 problems with the rewards:")
    assert "reward 'solves': its parameter 'solution'" in message
    assert "has no 'nothing'" in message
    assert "takes '*columns' by position" in message
    assert "a column 'step', a name that means the run's own step" in message


def test_a_single_problem_keeps_its_own_kind() -> None:
    with pytest.raises(BrokenReference):
        check_rewards([planned("nothing")], [], BuildContext())
    with pytest.raises(PluginError):
        check_rewards([planned("length", options={"x": 1})], [], BuildContext())


def test_a_column_of_a_reserved_name_says_how_to_rename_it() -> None:
    assert "Rename the column: --columns progress=my_progress" in problems(planned("length"), columns=("progress",))


def test_two_rewards_of_one_name_are_refused() -> None:
    message = problems(planned("length"), planned("solves", name="length"), columns=("solution",))
    assert "2 rewards are called 'length'" in message


def test_a_budget_needs_a_worker_and_single_samples() -> None:
    assert "only a worker can keep" in problems(planned("length", budget_s=1.0))
    assert "scope group" in problems(planned("length", budget_s=1.0, runs_in="worker", scope="group"))


@pytest.mark.parametrize("weight", [float("nan"), float("inf")])
def test_a_weight_is_a_finite_number(weight: float) -> None:
    assert f"the weight of reward 'length' is {weight}" in problems(planned("length", weight=weight))


def test_tasks_that_nobody_claims_and_rewards_that_nobody_needs_are_named() -> None:
    rewards = [planned("length", tasks=("math",)), planned("solves", tasks=("code", "sql"))]
    samples = [sample({"task": task}, id=f"train-{place}") for place, task in enumerate(("math", "geo", "geo"))]
    assert claim_warnings(rewards, samples) == (
        "no reward is meant for task 'geo': its 2 samples train nothing (the rewards' tasks: code, math, sql); "
        'the first is train-1: {"prompt": "1+1?", "task": "geo"}',
        "reward 'solves' is meant for 'code' and 'sql', and no sample has such a task",
    )


def test_samples_without_a_task_are_claimed_by_all() -> None:
    assert claim_warnings([planned("length", tasks=("math",))], [sample()]) == ()


def test_rewards_for_other_tasks_than_all_there_are_teach_nothing_and_are_an_error() -> None:
    samples = [sample({"task": "geo"}), sample({"task": "art"})]
    with pytest.raises(RewardError, match=r"any of the dataset's tasks \('geo', 'art'\).*tasks are math"):
        claim_warnings([planned("length", tasks=("math",))], samples)


def test_a_sample_without_task_and_a_reward_without_tasks_go_with_everything() -> None:
    assert claim_warnings([planned("length")], [sample({"task": "anything"})]) == ()


def test_checking_imports_neither_torch_nor_datasets() -> None:
    heavy = "('torch', 'transformers', 'datasets', 'numpy')"
    code = f"import sys, grpo_core.reward.scoring; sys.exit(any(name in sys.modules for name in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("planned_scope", "own", "scope"),
    [(None, None, "sample"), (None, "group", "group"), ("step", "group", "step"), ("sample", "group", "sample")],
)
def test_the_scope_is_that_of_the_plan_else_what_the_function_says(
    planned_scope: str | None, own: str | None, scope: str, tmp_path: Path
) -> None:
    lines = [
        "def mine(completions):",
        "    return [0.0] * len(completions)",
        *([f"mine.scope = {own!r}"] if own else []),
    ]
    (tmp_path / "mine.py").write_text("\n".join(lines))
    (bound,) = check_rewards([planned(f"{tmp_path}/mine.py:mine", scope=planned_scope)], (), BuildContext())
    assert bound.planned.scope == scope


def test_a_scope_that_there_is_not_names_the_reward_and_the_scopes(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def mine(completions): ...\nmine.scope = 'batch'\n")
    with pytest.raises(RewardError, match="the function of reward 'mine' has the scope 'batch'") as caught:
        check_rewards([planned(f"{tmp_path}/mine.py:mine", scope=None)], (), BuildContext())
    assert "'sample', 'group', 'step'" in str(caught.value.hint)

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.recipe.checks import check, prompts_per_step
from grpo_core.recipe.overrides import dotted
from tests.core.recipe.fakes import recipe_of


def _findings(**settings: Any) -> dict[str, str]:
    return {dotted(finding.path): finding.message for finding in check(recipe_of(**settings))}


def test_the_defaults_contradict_nothing() -> None:
    assert _findings() == {}


def test_steps_exclude_epochs() -> None:
    message = "epochs is 0.5 and steps is 7, but only one of them can hold; remove one"
    assert _findings(run={"steps": 7, "epochs": 0.5}) == {"run.epochs": message}


def test_prompts_per_step_exclude_completions_per_step() -> None:
    message = "completions_per_step is 16 and prompts_per_step is 2, but only one of them can hold; remove one"
    assert _findings(run={"prompts_per_step": 2, "completions_per_step": 16}) == {"run.completions_per_step": message}


def test_two_sizes_of_a_step_are_one_problem_whatever_else_would_be_wrong_with_them() -> None:
    for run in (
        {"prompts_per_step": 4, "completions_per_step": 12},
        {"prompts_per_step": 4, "completions_per_step": 8},
    ):
        found = list(check(recipe_of(run=run, trainer={"minibatches": 4})))
        assert [finding.path for finding in found] == [("run", "completions_per_step")]


def test_warmup_updates_exclude_a_share() -> None:
    assert _findings(trainer={"warmup_updates": 5}) == {}
    found = _findings(trainer={"warmup_updates": 5, "warmup_share": 0.1})
    assert found["trainer.warmup_share"].startswith("warmup_share is 0.1 and warmup_updates is 5")


@pytest.mark.parametrize(
    ("completions", "group", "message"),
    [
        (
            7,
            8,
            "7 completions per step are no multiple of 8 completions per prompt; valid near it: 8; "
            "or completions_per_prompt: 7",
        ),
        (
            6,
            4,
            "6 completions per step are no multiple of 4 completions per prompt; valid near it: 4, 8; "
            "or completions_per_prompt: 2, 3, 6",
        ),
        (1, 2, "1 completions per step are no multiple of 2 completions per prompt; valid near it: 2"),
    ],
)
def test_completions_per_step_come_in_whole_groups(completions: int, group: int, message: str) -> None:
    found = _findings(run={"completions_per_step": completions}, rollout={"completions_per_prompt": group})
    assert found == {"run.completions_per_step": message}


def test_one_group_is_a_step() -> None:
    recipe = recipe_of(run={"completions_per_step": 8}, rollout={"completions_per_prompt": 8})
    assert list(check(recipe)) == []
    assert prompts_per_step(recipe) == 1


@given(st.integers(1, 200), st.integers(2, 32))
def test_the_values_named_as_valid_are(completions: int, group: int) -> None:
    found = _findings(run={"completions_per_step": completions}, rollout={"completions_per_prompt": group})
    if completions % group == 0:
        assert found == {}
        return
    near, _, groups = found["run.completions_per_step"].partition("valid near it: ")[2].partition("; or")
    for valid in map(int, re.findall(r"\d+", near)):
        assert _findings(run={"completions_per_step": valid}, rollout={"completions_per_prompt": group}) == {}
    for valid in map(int, re.findall(r"\d+", groups)):
        assert _findings(run={"completions_per_step": completions}, rollout={"completions_per_prompt": valid}) == {}


def test_minibatches_divide_the_prompts() -> None:
    assert _findings(run={"prompts_per_step": 12}, trainer={"minibatches": 5}) == {
        "trainer.minibatches": "12 prompts per step cannot be divided evenly into 5 minibatches; "
        "valid minibatches: 1, 2, 3, 4, 6, 12; or prompts_per_step: 10, 15"
    }


def test_minibatches_divide_the_prompts_of_counted_completions() -> None:
    found = _findings(
        run={"completions_per_step": 24}, rollout={"completions_per_prompt": 8}, trainer={"minibatches": 2}
    )
    assert found["trainer.minibatches"].startswith("3 prompts per step cannot be divided evenly into 2 minibatches")


def test_long_lists_of_valid_values_are_cut() -> None:
    assert (
        "1, 2, 3, 4, 5, 6, …"
        in _findings(run={"prompts_per_step": 60}, trainer={"minibatches": 7})["trainer.minibatches"]
    )


def test_a_step_of_absurdly_many_completions_says_how_many() -> None:
    message = (
        "a step would be 500,000 prompts × 8 completions per prompt = 4,000,000 completions, all of them in memory at "
        "once; at most 1,000,000 can be"
    )
    assert _findings(run={"prompts_per_step": 500_000}) == {"run.prompts_per_step": message}


def test_two_rewards_of_one_name_need_names() -> None:
    assert _findings(rewards=["brevity", {"use": "acme/brevity"}]) == {
        "rewards.1.use": "2 rewards are named 'brevity'; give each a `name` of its own"
    }
    assert _findings(rewards=["brevity", {"use": "acme/brevity", "name": "other"}]) == {}


@pytest.mark.parametrize("name", ["a/b", "a b", "", "1a"])
def test_a_name_must_fit_into_metrics(name: str) -> None:
    assert _findings(rewards=[{"use": "brevity", "name": name}]) == {
        "rewards.0.name": f"'{name}' is no name for metrics; it needs letters, digits, '_' and '-', and a letter first"
    }


def test_weights_that_are_all_zero_teach_nothing() -> None:
    found = _findings(rewards=[{"use": "brevity", "weight": 0}])
    assert found == {"rewards": "every weight is 0, so nothing would be learnt; give one another weight"}


def test_pass_at_k_needs_k_samples() -> None:
    found = _findings(evaluation={"samples": 4, "pass_at": [1, 4, 8]})
    assert found == {"evaluation.pass_at": "pass@8 needs at least 8 samples, but evaluation.samples is 4"}


def test_evaluation_steps_need_something_to_evaluate_on() -> None:
    message = "there is nothing to evaluate on; set dataset.evaluation or dataset.evaluation_rows"
    assert _findings(evaluation={"every_steps": 5}) == {"evaluation.every_steps": message}
    assert _findings(evaluation={"every_steps": 5}, dataset={"use": "sums", "evaluation_rows": 9}) == {}


def test_prompts_per_step_default_to_eight() -> None:
    assert prompts_per_step(recipe_of()) == 8


def test_the_best_model_is_chosen_by_a_metric_of_an_evaluation_that_takes_place() -> None:
    rows = {"use": "sums", "evaluation_rows": 5}
    assert _findings(run={"save_best": "eval/accuracy"}, dataset=rows) == {}
    message = "'reward/mean' is no metric of an evaluation; choose one, such as eval/accuracy"
    assert _findings(run={"save_best": "reward/mean"}, dataset=rows) == {"run.save_best": message}
    message = "no evaluation has 'eval/acuracy'; did you mean 'eval/accuracy'?"
    assert _findings(run={"save_best": "eval/acuracy"}, dataset=rows) == {"run.save_best": message}
    for name in ("eval/pass@8", "eval/tasks/math/accuracy", "eval/rewards/mine/mean", "eval/truncated_share"):
        assert _findings(run={"save_best": name}, dataset=rows) == {}
    message = "there is nothing to measure 'eval/accuracy' on; set dataset.evaluation or dataset.evaluation_rows"
    assert _findings(run={"save_best": "eval/accuracy"}) == {"run.save_best": message}


def test_an_adapter_to_go_on_with_has_its_own_shape() -> None:
    assert _findings(trainer={"lora": {"adapter": "./a"}}) == {}
    assert _findings(trainer={"lora": {"rank": 4, "targets": ["q_proj"]}}) == {}
    assert _findings(trainer={"lora": {"adapter": "./a", "rank": 4, "targets": "all-linear"}}) == {
        f"trainer.lora.{key}": f"the adapter to go on with has its own {key}; remove one of the two settings"
        for key in ("rank", "targets")
    }

from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.errors import RecipeError
from grpo_core.recipe.memory import ModelShape
from grpo_core.recipe.numbers import derive, describe, print_plan, total_steps
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.recipe.resolve import resolve
from tests.core.recipe.fakes import fake_host, recipe_of

_SHAPE = ModelShape(parameters=1000, layers=2, hidden=8, kv_heads=1, head_dim=4, vocabulary=50)


def _plan(**settings: Any) -> LaunchPlan:
    return resolve(recipe_of(**settings), {}, host=fake_host())


@pytest.mark.parametrize(
    ("run", "rows", "steps"),
    [
        ({"steps": 7}, 10**6, 7),
        ({"prompts_per_step": 16, "epochs": 2}, 1000, 125),
        ({"prompts_per_step": 16}, 1000, 63),
        ({"prompts_per_step": 3, "epochs": 0.1}, 30, 1),
        ({"prompts_per_step": 100, "epochs": 0.01}, 30, 1),
        ({"completions_per_step": 128}, 49500, 3094),
    ],
)
def test_steps_are_given_or_follow_from_rows(run: dict[str, Any], rows: int, steps: int) -> None:
    assert total_steps(recipe_of(run=run), rows=rows) == steps


def test_more_steps_than_can_be_made_are_refused_with_their_number() -> None:
    with pytest.raises(
        RecipeError, match="1e\\+06 epochs of 80,000,000 rows are 10,000,000,000,000 steps; at most 1,0"
    ):
        total_steps(recipe_of(run={"epochs": 1e6}), rows=80_000_000)


def test_the_multimodal_run_of_two_iterations_is_counted_as_it_ran() -> None:
    # 8,000 rows, G = 8, 96 completions a step, num_iterations 2: about 1,300 updates, as its documents say
    settings = {"run": {"completions_per_step": 96, "epochs": 1}, "trainer": {"num_iterations": 2}}
    assert derive(_plan(**settings), rows=8000).updates == 2 * 667


def test_totals_are_hand_worked() -> None:
    plan = _plan(
        run={"prompts_per_step": 4, "steps": 10},
        rollout={"completions_per_prompt": 3, "max_completion_tokens": 20},
        trainer={"num_iterations": 2, "minibatches": 2},
    )
    numbers = derive(plan, rows=5)
    assert (numbers.steps, numbers.updates, numbers.completions) == (10, 40, 120)
    assert numbers.max_generated_tokens == 2400


def test_the_plan_tells_what_of_the_model_is_trained() -> None:
    plan = _plan(model="acme/tiny", trainer={"lora": {"rank": 2}})
    lines = dict(describe(plan, rows=10, evaluation_rows=5, longest_prompt=12, parameters=1234, adapter=56))
    assert lines["model"] == "acme/tiny, 1.23 k parameters and 56 of an adapter, which is trained, fp32"


@given(st.integers(1, 10**6), st.integers(1, 500), st.integers(1, 20))
def test_whole_epochs_see_every_row_and_not_a_step_more(rows: int, prompts: int, epochs: int) -> None:
    steps = total_steps(recipe_of(run={"prompts_per_step": prompts, "epochs": epochs}), rows=rows)
    assert steps == ceil(epochs * rows / prompts)
    assert (steps - 1) * prompts < epochs * rows <= steps * prompts


def test_the_plan_is_told_in_words() -> None:
    plan = _plan(
        model="acme/tiny",
        rewards=["brevity", {"use": "timed", "weight": 0.5}],
        run={"prompts_per_step": 4, "epochs": 2},
        rollout={"completions_per_prompt": 3, "max_completion_tokens": 20},
        trainer={"num_iterations": 2, "minibatches": 2},
    )
    lines = dict(describe(plan, rows=10, evaluation_rows=5, longest_prompt=12, parameters=1234))
    assert lines == {
        "micro-batches": "of up to 4,096 tokens, prompts once a group",
        "model": "acme/tiny, 1.23 k parameters, fp32",
        "engines": "completions by transformers, updates by torch, in 1 process",
        "data": "10 training rows, 5 evaluation rows, prompts of up to 12 tokens",
        "rewards": "1 × brevity, 0.5 × timed",
        "a step": "4 prompts × 3 completions = 12 completions",
        "steps": "5 = 2 epochs × 10 rows ÷ 4 prompts, rounded up",
        "updates": "20 = 5 steps × 2 iterations × 2 minibatches",
        "tokens": "at most 1.2 k drawn: 60 completions of up to 20",
        "checkpoints": "every 30 minutes, at the end, and at the last whole step when the run fails; the newest 2 and "
        "the last good one are kept",
    }


def test_one_of_a_kind_is_no_plural() -> None:
    plan = _plan(run={"prompts_per_step": 1, "epochs": 1}, rollout={"completions_per_prompt": 2})
    lines = dict(describe(plan, rows=1, evaluation_rows=1, longest_prompt=1, parameters=1))
    assert lines["data"] == "1 training row, 1 evaluation row, prompts of up to 1 token"
    assert lines["a step"] == "1 prompt × 2 completions = 2 completions"
    assert lines["steps"] == "1 = 1 epoch × 1 row ÷ 1 prompt, rounded up"
    assert lines["updates"] == "1 = 1 step × 1 iteration × 1 minibatch"


def test_the_memory_is_told_where_the_backends_share_it() -> None:
    told = {
        route: dict(
            describe(_plan(rollout=route), rows=1, evaluation_rows=0, longest_prompt=1, parameters=1000, shape=_SHAPE)
        )
        for route in ("transformers", "remote")
    }
    assert told["transformers"]["memory"].startswith("about ")
    assert "KV cache" in told["transformers"]["memory"]
    assert "reference" not in told["transformers"]["memory"]
    assert "memory" not in told["remote"]


def test_printing_gives_one_line_a_number_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_plan(_plan(run={"steps": 3}), rows=1, evaluation_rows=0, longest_prompt=1, parameters=3 * 10**9)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "model: m, 3 B parameters, fp32"
    assert "steps: 3" in lines

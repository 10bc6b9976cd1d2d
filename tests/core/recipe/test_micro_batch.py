from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.recipe.memory import ModelShape, estimate_memory
from grpo_core.recipe.micro_batch import (
    LEAST_CPU_TOKENS,
    MOST_CPU_TOKENS,
    MOST_TOKENS,
    USED_SHARE,
    with_micro_batch,
)
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.recipe.resolve import resolve
from tests.core.recipe.fakes import fake_host, recipe_of

SETTING = "trainer.micro_batch_tokens"
HERE: dict[str, Any] = {"longest_prompt": 100, "ranks": 1, "on_gpu": False, "memory": None}


def shape(parameters: int) -> ModelShape:
    return ModelShape(parameters=parameters, layers=8, hidden=384, kv_heads=2, head_dim=64, vocabulary=49152)


def plan(*, prompts: int = 64, completions: int = 8, tokens: int = 50, **trainer: Any) -> LaunchPlan:
    rollout = {"completions_per_prompt": completions, "max_completion_tokens": tokens}
    return resolve(recipe_of(rollout=rollout, run={"prompts_per_step": prompts}, trainer=trainer), {}, host=fake_host())


def found(made: LaunchPlan, parameters: int, **here: Any) -> tuple[int | None, str]:
    settled = with_micro_batch(made, shape(parameters), **{**HERE, **here})
    return settled.recipe.trainer.micro_batch_tokens, settled.found.get(SETTING, "")


def test_on_a_cpu_it_is_no_larger_than_is_faster() -> None:
    assert found(plan(), 31_000_000) == (LEAST_CPU_TOKENS, "more is no faster on a CPU")
    assert found(plan(), 1_000_000) == (2**32 // 1_000_000, "more is no faster on a CPU")
    assert found(plan(prompts=640), 1000) == (MOST_CPU_TOKENS, "more is no faster on a CPU")


def test_a_prompt_with_all_its_completions_is_one_micro_batch() -> None:
    assert found(plan(completions=24), 31_000_000) == (
        100 + 24 * 50,
        "a prompt with all its completions, and more is no faster on a CPU",
    )


def test_on_a_gpu_it_is_the_update_or_as_much_as_is_of_use() -> None:
    assert found(plan(prompts=4), 31_000_000, on_gpu=True) == (
        4 * 100 + 32 * 50,
        "the whole update is one micro-batch",
    )
    assert found(plan(prompts=640), 31_000_000, on_gpu=True) == (MOST_TOKENS, "larger is faster on a GPU")


def test_little_memory_makes_it_smaller() -> None:
    free = found(plan(prompts=4, completions=24), 31_000_000)[0]
    tokens, reason = found(plan(prompts=4, completions=24), 31_000_000, memory=1400 << 20)
    assert (tokens, reason) == (650, "more does not fit into 1.4 GiB")
    assert free == 1300


def test_a_number_in_the_recipe_stays_and_an_unknown_shape_has_the_default() -> None:
    assert found(plan(micro_batch_tokens=77), 31_000_000) == (77, "")
    settled = with_micro_batch(plan(), None, **HERE)
    assert settled.recipe.trainer.micro_batch_tokens == settled.recipe.trainer.token_budget == 4096
    assert settled.found == {SETTING: "the shape of the model is not known"}


@given(
    parameters=st.integers(1000, 10**9),
    prompts=st.integers(1, 64),
    completions=st.integers(2, 32),
    tokens=st.integers(1, 500),
    gibibytes=st.floats(0.1, 200),
    on_gpu=st.booleans(),
    ranks=st.integers(1, 8),
)
def test_it_fits_or_is_the_longest_sequence(
    parameters: int, prompts: int, completions: int, tokens: int, gibibytes: float, on_gpu: bool, ranks: int
) -> None:
    made = plan(prompts=prompts, completions=completions, tokens=tokens)
    memory = int(gibibytes * 2**30)
    settled = with_micro_batch(made, shape(parameters), longest_prompt=100, ranks=ranks, on_gpu=on_gpu, memory=memory)
    chosen = settled.recipe.trainer.micro_batch_tokens
    assert chosen is not None
    assert chosen >= 100 + tokens
    peak = estimate_memory(settled, shape(parameters), longest_prompt=100, ranks=ranks).peak
    assert peak <= USED_SHARE * memory or chosen == 100 + tokens


@pytest.mark.parametrize("number", [1, 512])
def test_a_settled_plan_is_settled(number: int) -> None:
    settled = with_micro_batch(plan(), shape(31_000_000 * number), **HERE)
    assert with_micro_batch(settled, shape(1), **HERE) == settled

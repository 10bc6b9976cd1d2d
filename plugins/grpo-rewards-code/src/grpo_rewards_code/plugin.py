"""What this distribution registers."""

from __future__ import annotations

from collections.abc import Iterable

from grpo_core.api import DatasetSpec, RecipeSpec, RewardSpec, hookimpl


@hookimpl
def grpo_reward_functions() -> Iterable[RewardSpec]:
    """The reward that runs programs."""
    yield RewardSpec(
        name="code_reward",
        summary="1.0 when the program passes every test of its row, run apart from them in a sandbox, else 0.0",
        target="grpo_rewards_code.reward:make",
        options="grpo_rewards_code.options:CodeRewardOptions",
        pure=True,
        tasks=("code",),
        deadline_s=3600.0,
        verifies=True,
        aliases=("code",),
    )


@hookimpl
def grpo_dataset_preprocessors() -> Iterable[DatasetSpec]:
    """Programming problems whose rows hold tests."""
    yield DatasetSpec(
        name="code",
        summary="Programming problems with tests: rows of APPS, TACO, LiveCodeBench, open-r1, KodCode, MBPP, HumanEval",
        target="grpo_rewards_code.rows.prompt:make",
        options="grpo_rewards_code.rows.options:CodeRowsOptions",
        hub_ids=(
            "open-r1/verifiable-coding-problems-python",
            "codeparrot/apps",
            "BAAI/TACO",
            "livecodebench/code_generation",
            "livecodebench/code_generation_lite",
            "KodCode/KodCode-V1",
            "google-research-datasets/mbpp",
            "openai/openai_humaneval",
        ),
    )
    yield DatasetSpec(
        name="code_basics",
        summary="Small functions on lists, texts and numbers, with tests; made without a download",
        target="grpo_rewards_code.basics.prompt:make",
        options="grpo_rewards_code.basics.options:CodeBasicsOptions",
        source="grpo_rewards_code.basics.source:rows",
    )


@hookimpl
def grpo_recipes() -> Iterable[RecipeSpec]:
    """Runs that work as they are."""
    yield RecipeSpec(
        name="multitask-math-code",
        summary="Maths and code in one run with the embedded 0.9 M-parameter model; needs grpo-rewards-math too",
        package="grpo_rewards_code",
        path="recipes/multitask-math-code.yaml",
    )


@hookimpl
def grpo_health() -> Iterable[str]:
    """How isolated programs would run on this machine."""
    from grpo_rewards_code.sandbox.health import health

    return health()

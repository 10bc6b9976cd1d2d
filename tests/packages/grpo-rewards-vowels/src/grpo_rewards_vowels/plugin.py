"""A plugin as a third party writes it."""

from collections.abc import Iterable

from grpo_core.api import RewardSpec, hookimpl


@hookimpl
def grpo_reward_functions() -> Iterable[RewardSpec]:
    yield RewardSpec(
        name="vowel_share",
        summary="The share of the letters that are vowels, times a scale",
        target="grpo_rewards_vowels.rewards:make",
        options="grpo_rewards_vowels.options:VowelOptions",
        pure=True,
        aliases=("vowels",),
    )

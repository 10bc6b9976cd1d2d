"""A plugin whose hook is called something else."""

from grpo_core.api import RewardSpec, hookimpl


@hookimpl
def grpo_reward_function():
    yield RewardSpec(name="unheard", summary="Never seen", target="grpo_misspelt.rewards:unheard")

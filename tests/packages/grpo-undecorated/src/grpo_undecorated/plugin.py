"""A plugin that forgot to mark its hook."""

from grpo_core.api import RewardSpec


def grpo_reward_functions():
    yield RewardSpec(name="unmarked", summary="Never seen", target="grpo_undecorated.rewards:unmarked")

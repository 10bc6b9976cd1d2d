"""A plugin that makes its specs and forgets to return them."""

from grpo_core.api import RewardSpec, hookimpl


@hookimpl
def grpo_reward_functions():
    [RewardSpec(name="forgotten", summary="Never seen", target="grpo_returns_none.rewards:forgotten")]

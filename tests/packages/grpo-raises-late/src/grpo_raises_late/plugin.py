"""A plugin that yields one good spec, then fails."""

from grpo_core.api import RewardSpec, hookimpl


@hookimpl
def grpo_reward_functions():
    yield RewardSpec(name="first", summary="Good, but not alone", target="grpo_raises_late.rewards:first")
    names = {}
    yield RewardSpec(name=names["second"], summary="Never seen", target="grpo_raises_late.rewards:second")

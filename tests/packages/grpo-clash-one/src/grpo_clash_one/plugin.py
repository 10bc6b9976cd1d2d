"""One of two plugins that call a reward the same; an error only for who uses the short name."""

from grpo_core.api import RewardSpec, hookimpl


@hookimpl
def grpo_reward_functions():
    yield RewardSpec(name="politeness", summary="Always 1.0", target="grpo_clash_one.rewards:politeness")

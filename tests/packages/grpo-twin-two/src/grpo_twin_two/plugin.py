"""One of two plugins with the same entry-point name, as authors who copy an example have; both must work."""

from grpo_core.api import RewardSpec, hookimpl


@hookimpl
def grpo_reward_functions():
    yield RewardSpec(name="right_hand", summary="Always 1.0", target="grpo_twin_two.rewards:right_hand")

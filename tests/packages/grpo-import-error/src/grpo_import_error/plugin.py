"""A plugin that needs a module nobody installed."""

import a_module_that_is_not_there  # noqa: F401

from grpo_core.api import RewardSpec, hookimpl


@hookimpl
def grpo_reward_functions():
    yield RewardSpec(name="unreachable", summary="Never seen", target="grpo_import_error.rewards:unreachable")

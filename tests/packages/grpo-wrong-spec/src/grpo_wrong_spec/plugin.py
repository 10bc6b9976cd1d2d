"""A plugin that describes a dataset where a reward is asked for."""

from grpo_core.api import DatasetSpec, hookimpl


@hookimpl
def grpo_reward_functions():
    yield DatasetSpec(name="sums", summary="Sums of two numbers", target="grpo_wrong_spec.sums:to_sample")

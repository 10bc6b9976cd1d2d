"""Core's own components, registered through the same door as everyone's."""

from __future__ import annotations

from collections.abc import Iterable

from grpo_core.plugins.hookspecs import hookimpl
from grpo_core.plugins.specs import RewardSpec, RolloutSpec, TrainerSpec
from grpo_core.types.report import RunOutcome, RunStarted, StepReport


@hookimpl
def grpo_reward_functions() -> Iterable[RewardSpec]:
    """Rewards of form and length, and of tool calls."""
    yield RewardSpec(
        name="format_reward",
        summary="1.0 for exactly one <think> block followed by exactly one <answer> block, else 0.0",
        target="grpo_core.reward.builtin.think_answer:format_reward",
        pure=True,
        aliases=("format",),
    )
    yield RewardSpec(
        name="react_format",
        summary="1.0 for a <think> block followed by Action and Action Input, else 0.0",
        target="grpo_core.reward.builtin.react:react_format",
        pure=True,
    )
    yield RewardSpec(
        name="toolbench",
        summary="1.0 when the ReAct call is the reference's: the same tool, the same arguments as JSON, else 0.0",
        target="grpo_core.reward.builtin.toolbench:toolbench",
        pure=True,
    )
    yield RewardSpec(
        name="repetition",
        summary="A penalty for repeated n-grams of tokens",
        target="grpo_core.reward.builtin.repetition:make",
        options="grpo_core.reward.builtin.options:RepetitionOptions",
        pure=True,
        aliases=("repetition_reward",),
    )
    yield RewardSpec(
        name="soft_overlong",
        summary="A penalty that grows from 0 to -1 over the last tokens before the length limit (DAPO)",
        target="grpo_core.reward.builtin.overlong:make",
        options="grpo_core.reward.builtin.options:SoftOverlongOptions",
        pure=True,
        aliases=("soft_overlong_reward",),
    )


@hookimpl
def grpo_rollout_backends() -> Iterable[RolloutSpec]:
    """Generation in the trainer's own process."""
    yield RolloutSpec(
        name="transformers",
        summary="In-process generation with Hugging Face modules, sharing the trainer's weights",
        target="grpo_core.rollout.backend:make",
        options="grpo_core.rollout.options:TransformersRolloutOptions",
        capabilities=frozenset({"images", "weights:shared", "weights:stream"}),
    )


@hookimpl
def grpo_trainer_backends() -> Iterable[TrainerSpec]:
    """Updates with plain PyTorch."""
    yield TrainerSpec(
        name="torch",
        summary="AdamW in plain PyTorch, fp32 or bf16 with fp32 masters",
        target="grpo_core.trainer.backend:make",
        options="grpo_core.trainer.options:TorchTrainerOptions",
        capabilities=frozenset({"freeze", "images", "lora", "weights:shared", "weights:stream"}),
    )


@hookimpl
def grpo_run_started(started: RunStarted) -> None:
    """Open the console's view of the run."""
    from grpo_core.observe.console import view

    view.run_started(started)


@hookimpl
def grpo_step_finished(report: StepReport) -> None:
    """Show a step."""
    from grpo_core.observe.console import view

    view.step_finished(report)


@hookimpl
def grpo_run_finished(outcome: RunOutcome) -> None:
    """Say how it went."""
    from grpo_core.observe.console import view

    view.run_finished(outcome)

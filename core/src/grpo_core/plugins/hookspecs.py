"""The hooks. Registration hooks describe components; observer hooks watch a run; `grpo_health` is the doctor's.

A plugin implements any of them in the module its entry point (group `grpo_core.v1`) names. Registration hooks run in
every `grpoctl` command, so that module must not import torch, transformers, datasets or an engine.
"""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

from grpo_core.plugins.specs import DatasetSpec, RecipeSpec, RewardSpec, RolloutSpec, TrackerSpec, TrainerSpec
from grpo_core.types.report import RunOutcome, RunStarted, StepReport

__all__ = ["ENTRY_POINT_GROUP", "hookimpl", "hookspec"]

ENTRY_POINT_GROUP = "grpo_core.v1"

hookspec = pluggy.HookspecMarker("grpo_core")
hookimpl = pluggy.HookimplMarker("grpo_core")


@hookspec
def grpo_dataset_preprocessors() -> Iterable[DatasetSpec]:  # type: ignore[empty-body]
    """Describe datasets: how their rows become samples and, where the plugin makes the rows, where they come from.

    Example:

        @hookimpl
        def grpo_dataset_preprocessors():
            yield DatasetSpec(
                name="arithmetic",
                summary="Sums of two numbers",
                target="grpo_acme.arithmetic:to_sample",
                source="grpo_acme.arithmetic:rows",
            )
    """


@hookspec
def grpo_reward_functions() -> Iterable[RewardSpec]:  # type: ignore[empty-body]
    """Describe reward functions.

    Example:

        @hookimpl
        def grpo_reward_functions():
            yield RewardSpec(
                name="brevity",
                summary="1.0 for an answer of at most 200 characters",
                target="grpo_acme.rewards:brevity",
                pure=True,
            )
    """


@hookspec
def grpo_rollout_backends() -> Iterable[RolloutSpec]:  # type: ignore[empty-body]
    """Describe rollout backends.

    Example:

        @hookimpl
        def grpo_rollout_backends():
            yield RolloutSpec(
                name="acme",
                summary="Completions from the acme engine",
                target="grpo_acme.rollout:make",
                options="grpo_acme.options:AcmeRollout",
                requires=("acme-engine>=2",),
                capabilities=frozenset({"weights:stream"}),
            )
    """


@hookspec
def grpo_trainer_backends() -> Iterable[TrainerSpec]:  # type: ignore[empty-body]
    """Describe trainer backends.

    Example:

        @hookimpl
        def grpo_trainer_backends():
            yield TrainerSpec(
                name="acme",
                summary="Updates by the acme engine",
                target="grpo_acme.trainer:make",
                options="grpo_acme.options:AcmeTrainer",
                capabilities=frozenset({"weights:stream"}),
            )
    """


@hookspec
def grpo_trackers() -> Iterable[TrackerSpec]:  # type: ignore[empty-body]
    """Describe trackers: observers that a run names in `run.report_to`.

    Example:

        @hookimpl
        def grpo_trackers():
            yield TrackerSpec(
                name="acme",
                summary="Curves at acme.example",
                target="grpo_acme.tracker:make",
                options="grpo_acme.options:AcmeTracker",
                requires=("acme-client>=3",),
            )
    """


@hookspec
def grpo_recipes() -> Iterable[RecipeSpec]:  # type: ignore[empty-body]
    """Describe recipe files that the plugin ships.

    Example:

        @hookimpl
        def grpo_recipes():
            yield RecipeSpec(
                name="acme-small",
                summary="Sums with a small model",
                package="grpo_acme",
                path="recipes/small.yaml",
            )
    """


@hookspec
def grpo_health() -> Iterable[str]:  # type: ignore[empty-body]
    """Say how the plugin fares on this machine, in lines for people: what it found, what is missing, what to do.

    Called by `grpoctl plugins doctor` only, so it may take some seconds; the plugin's name is put before each line.

    Example:

        @hookimpl
        def grpo_health():
            found = shutil.which("acme-engine")
            yield f"the engine is {found}" if found else "there is no acme-engine: pip install acme-engine"
    """


@hookspec
def grpo_run_started(started: RunStarted) -> None:
    """A run begins or goes on after a resume. Called on rank 0, after everything is loaded.

    Example:

        @hookimpl
        def grpo_run_started(started):
            print(f"{started.total_steps} steps, see {started.run_dir}")
    """


@hookspec
def grpo_step_finished(report: StepReport) -> None:
    """A step is done and recorded. Called on rank 0; cannot change the run.

    Example:

        @hookimpl
        def grpo_step_finished(report):
            print(report.step, report.metrics["reward/mean"])
    """


@hookspec
def grpo_run_finished(outcome: RunOutcome) -> None:
    """The run ended, well or not. Called on rank 0, once.

    Example:

        @hookimpl
        def grpo_run_finished(outcome):
            print(outcome.status)
    """

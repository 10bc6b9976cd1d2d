"""What this distribution registers."""

from __future__ import annotations

from collections.abc import Iterable

from grpo_core.api import TrackerSpec, hookimpl


@hookimpl
def grpo_trackers() -> Iterable[TrackerSpec]:
    """Trackers; none of their libraries is imported before a run names it."""
    yield TrackerSpec(
        name="tensorboard",
        summary="Event files in the run's folder, for `tensorboard --logdir`",
        target="grpo_trackers.to_tensorboard:make",
        options="grpo_trackers.options:TensorBoardOptions",
        requires=("tensorboard>=2.16",),
    )
    yield TrackerSpec(
        name="wandb",
        summary="Weights & Biases; the key is taken from WANDB_API_KEY, and WANDB_MODE=offline needs none",
        target="grpo_trackers.to_wandb:make",
        options="grpo_trackers.options:WandbOptions",
        requires=("wandb>=0.19",),
    )
    yield TrackerSpec(
        name="trackio",
        summary="Trackio: a local dashboard, or one in a Hugging Face Space",
        target="grpo_trackers.to_trackio:make",
        options="grpo_trackers.options:TrackioOptions",
        requires=("trackio>=0.20",),
    )

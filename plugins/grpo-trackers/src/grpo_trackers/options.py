"""Options of the trackers: `run.tracker_options.wandb.project` and so on."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class TensorBoardOptions(_Options):
    """TensorBoard."""

    directory: str | None = None
    """Where the event files go; default: `trackers/tensorboard` in the run's folder."""


class WandbOptions(_Options):
    """Weights & Biases. What is not set here is taken from wandb's own environment variables."""

    project: str | None = None
    """The project; default: WANDB_PROJECT, else `grpo`."""
    entity: str | None = None
    """The user or team; default: WANDB_ENTITY, else your own."""
    name: str | None = None
    """The run's name; default: WANDB_NAME, else that of the run's folder."""
    group: str | None = None
    """Runs that belong together; default: WANDB_RUN_GROUP."""
    tags: tuple[str, ...] = ()
    """Tags of the run."""
    mode: Literal["online", "offline"] | None = None
    """`offline` writes to the run's folder only, for `wandb sync` later; default: WANDB_MODE, else online."""


class TrackioOptions(_Options):
    """Trackio."""

    project: str = "grpo"
    """The project."""
    name: str | None = None
    """The run's name; default: that of the run's folder."""
    group: str | None = None
    """Runs that belong together."""
    space_id: str | None = None
    """A Hugging Face Space to show the run in, `owner/name`; default: TRACKIO_SPACE_ID, else the local dashboard."""

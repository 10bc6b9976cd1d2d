"""The plan: a recipe resolved once, into targets and numbers that every rank reads. Plain JSON; no discovery needed.

`recipe/resolve.py` makes it; `loop/` runs it.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from grpo_core import __version__
from grpo_core.errors import CheckpointError, UsageError
from grpo_core.plugins.specs import Scope
from grpo_core.recipe.folder import PLAN_FILE, STATE_FILE, checkpoints_of, is_checkpoint
from grpo_core.recipe.schema import Recipe
from grpo_core.regular_files import TEXT_BYTES, path_fault, read_bytes, shown

__all__ = [
    "OF_A_RUN",
    "BatchPlan",
    "LaunchPlan",
    "PlannedComponent",
    "PlannedDataset",
    "PlannedObserver",
    "PlannedReward",
    "require_unfinished",
    "run_folder",
]

logger = logging.getLogger("grpo_core")

OF_A_RUN = f"the run's {PLAN_FILE}"
"""Who set what a run that there is was started with."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PlannedComponent(_Part):
    """A component by what it takes to build it."""

    name: str
    """Qualified: `dist/name`, or the reference `file.py:attr` as written."""
    target: str
    """`pkg.mod:attr`, or `/absolute/file.py:attr`."""
    options_model: str | None = None
    """`pkg.options:Model`; None: the target is the thing itself."""
    options: dict[str, Any] = {}
    """Validated options, every default filled in, as JSON values."""
    distribution: str | None = None
    """Who provides it; None for a file."""
    version: str | None = None
    """Of the distribution."""
    capabilities: tuple[str, ...] = ()
    """Of a backend."""


class PlannedDataset(_Part):
    """A dataset reference, taken apart, and how samples are made of its rows."""

    name: str = ""
    """In a mix: what it is called in ids, metrics and the column `dataset`. Empty: it is the only one."""
    weight: float | None = None
    """In a mix: its share of the prompts, relative to the others; None: its number of rows."""
    reference: str
    """Where the rows are: an absolute path, a hub id, or the name of a dataset that makes its own; with details and
    number of rows as written."""
    preprocess: PlannedComponent | None = None
    """Makes samples of rows; None: the mapping of well-known column names."""
    source: str | None = None
    """`pkg.mod:attr` of a plugin's row source; None: a file or a hub id."""
    buffer_rows: int | None = None
    """The rows are streamed, this many at a time; None: they are all read before the run."""
    columns: dict[str, str] = {}
    """Columns to rename before anything else, old name -> new name."""
    system: str | None = None
    """The text of the system prompt for rows without one."""
    bad_images: Literal["error", "drop"] = "error"
    """What happens to rows with a missing or broken image."""


class PlannedReward(_Part):
    """A reward by what it takes to build and call it."""

    name: str
    """In metrics."""
    component: PlannedComponent
    """What to build."""
    weight: float
    """In the total."""
    columns: dict[str, str]
    """Parameter -> column, where they differ."""
    tasks: tuple[str, ...]
    """Values of `task` it scores; empty: all."""
    scope: Scope | None
    """What it must see at once; None: what the function's attribute `scope` says, else one completion."""
    pure: bool
    """Whether identical inputs have identical scores."""
    budget_s: float | None
    """An answer that takes longer is wrong."""
    deadline_s: float
    """A call that takes longer has failed."""
    runs_in: Literal["main", "worker"]
    """Where it runs."""
    verifies: bool
    """Whether 1.0 means correct."""


class PlannedObserver(_Part):
    """A distribution whose observer hooks rank 0 calls."""

    distribution: str
    """Its name."""
    version: str
    """Its version."""
    module: str
    """The module with its hooks: `pkg.plugin`, or `/absolute/file.py`."""


class BatchPlan(_Part):
    """The numbers that follow from the settings."""

    prompts_per_step: int
    """Prompts."""
    completions_per_prompt: int
    """G."""
    completions_per_step: int
    """Their product."""
    updates_per_step: int
    """num_iterations x minibatches."""


class LaunchPlan(_Part):
    """Everything a rank needs to know."""

    core_version: str
    """Of grpo-core that made it."""
    recipe: Recipe
    """The settings, all layers merged."""
    origins: dict[str, str] = {}
    """Dotted path -> who set it."""
    datasets: tuple[PlannedDataset, ...]
    """Where training rows come from: one, or those of a mix."""
    evaluation: PlannedDataset | None
    """Evaluation rows; None: none, or made from the training dataset."""
    rewards: tuple[PlannedReward, ...]
    """In the order of the recipe."""
    rollout: PlannedComponent
    """The rollout backend."""
    trainer: PlannedComponent
    """The trainer backend."""
    weights_route: Literal["shared", "stream"]
    """How weights reach the rollout backend."""
    batch: BatchPlan
    """Derived numbers."""
    observers: tuple[PlannedObserver, ...] = ()
    """Who watches."""
    trackers: tuple[PlannedComponent, ...] = ()
    """Who watches because the recipe says so."""
    found: dict[str, str] = {}
    """Dotted path of a setting whose default is found at launch -> why it is what it is."""
    command: str = ""
    """What was typed, one command a line; for the model card."""
    processes: int = 1
    """How many the run was started with on all machines; for a resume that finds no checkpoint."""
    per_machine: int = 1
    """Of these on each machine."""

    def text(self) -> str:
        """What stands in plan.json."""
        return self.model_dump_json(indent=2) + "\n"

    def write(self, run_dir: Path) -> None:
        """Write plan.json into the run's folder; the one before stays whole until this one is."""
        aside = (run_dir / PLAN_FILE).with_suffix(".partial")
        aside.write_text(self.text(), encoding="utf-8")
        aside.replace(run_dir / PLAN_FILE)

    @classmethod
    def read(cls, run_dir: Path) -> LaunchPlan:
        """Read the plan of a run. Where plan.json is missing or damaged, the copy in the newest checkpoint that has a
        readable one is taken, with a warning; raises `CheckpointError` when there is none, or one of another core."""
        try:
            return cls._read(run_dir / PLAN_FILE)
        except CheckpointError as error:
            for checkpoint in reversed(checkpoints_of(run_dir)):
                try:
                    plan = cls._read(checkpoint / PLAN_FILE)
                except CheckpointError:
                    continue
                logger.warning("%s; its copy in %s is taken", error.message, checkpoint)
                return plan
            raise

    @classmethod
    def _read(cls, file: Path) -> LaunchPlan:
        try:
            return cls.model_validate_json(read_bytes(file, most=TEXT_BYTES))
        except OSError as error:
            message = f"{file} cannot be read: {error.strerror}"
            raise CheckpointError(message, hint="Name the folder of a run.") from None
        except ValidationError:
            raise CheckpointError(
                f"{file} is no plan that grpo-core {__version__} understands",
                hint="It may be damaged, or made by another version of grpo-core. The run's own command with "
                f"--plan-only and another --output writes a {PLAN_FILE} that can be copied here.",
            ) from None


def run_folder(path: Path) -> Path:
    """The run that `path`, its folder or one of its checkpoints, belongs to; raises `UsageError` for anything else."""
    if fault := path_fault(str(path)):
        raise UsageError(f"{shown(str(path))} can be no folder: {fault}", hint=_RUN_HINT)
    folder = path.resolve().parent.parent if is_checkpoint(path) else path
    if any((each / PLAN_FILE).is_file() for each in (folder, *checkpoints_of(folder))):
        return folder
    if not path.exists():
        raise UsageError(f"there is no folder {path}", hint=_RUN_HINT)
    if any((path / name).is_file() for name in ("config.json", "adapter_config.json")):
        raise UsageError(
            f"{path} is neither a run's folder nor a checkpoint: it holds a model",
            hint=f"name a model by --model: grpoctl eval --model {path} --dataset …, or grpoctl train --model {path} …",
        )
    raise UsageError(
        f"{path} is neither a run's folder (it has no {PLAN_FILE}) nor a checkpoint (no {STATE_FILE})", hint=_RUN_HINT
    )


def require_unfinished(run_dir: Path) -> None:
    """Raise `UsageError` where a run has its final model."""
    if (run_dir / "final").exists():
        raise UsageError(
            f"{run_dir} is finished: nothing is left to train",
            hint="start a new run with --model pointing to its final/ folder to train further; to go on from an older "
            "checkpoint, copy the run's folder without final/",
        )


_RUN_HINT = "give the folder that `grpoctl train` printed, or one of its checkpoints/step-…"

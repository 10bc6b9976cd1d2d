"""What registration hooks return: frozen descriptions. A target is text; it is imported when a run selects it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

__all__ = [
    "KINDS",
    "ComponentSpec",
    "DatasetSpec",
    "Kind",
    "RecipeSpec",
    "RewardSpec",
    "RolloutSpec",
    "Scope",
    "TrackerSpec",
    "TrainerSpec",
]

Kind = Literal["dataset", "reward", "rollout", "trainer", "tracker", "recipe"]
KINDS: tuple[Kind, ...] = ("dataset", "reward", "rollout", "trainer", "tracker", "recipe")
Scope = Literal["sample", "group", "step"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentSpec:
    """What every kind of component says about itself."""

    kind: ClassVar[Kind]

    name: str
    """`[a-z][a-z0-9_]*`: what a recipe writes."""
    summary: str
    """One line for listings."""
    target: str
    """`pkg.mod:attr`. Of backends and trackers always a factory `make(options, context)`, whose options are None where
    the spec has none. Of rewards and datasets the thing itself, or with `options` such a factory."""
    options: str | None = None
    """`pkg.options:Model`, a pydantic model that forbids unknown keys; None: takes no options."""
    requires: tuple[str, ...] = ()
    """Distributions needed at run time (`vllm>=0.30`); alternatives are separated by ` | `."""
    aliases: tuple[str, ...] = ()
    """Other names for the same component."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSpec(ComponentSpec):
    """A dataset: its target is a preprocessor `(row) -> Sample | None`; None drops the row, counted."""

    kind: ClassVar[Kind] = "dataset"

    hub_ids: tuple[str, ...] = ()
    """Hugging Face or ModelScope ids whose rows this preprocessor understands; used for them by default."""
    source: str | None = None
    """`pkg.mod:attr` of rows made by the plugin itself, a function
    `rows(options, *, split, seed) -> Iterable[Mapping[str, object]]` with split `train` or `evaluation`, called with
    the options model (None when the spec has none). None: rows come from a file or a hub."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardSpec(ComponentSpec):
    """A reward function: called with equal-length lists bound by parameter name, gives one score a completion."""

    kind: ClassVar[Kind] = "reward"

    scope: Scope = "sample"
    """How much it must see at once: one completion at a time is enough (`sample`), all completions of a prompt
    (`group`), or all of the step (`step`)."""
    pure: bool = False
    """True: the score depends on completion and columns alone, so identical pairs are scored once (scope sample)."""
    tasks: tuple[str, ...] = ()
    """Values of the `task` column it is meant for; empty: all."""
    budget_s: float | None = None
    """Seconds an answer may take to evaluate; one that takes longer is wrong and scores 0.0. Needs
    `runs_in="worker"`, whose process is killed then. None: only the outer deadline holds, and exceeding it is a
    failure."""
    deadline_s: float = 300.0
    """Outer deadline of one call, in seconds, where the recipe does not say; a call that takes longer has failed."""
    runs_in: Literal["main", "worker"] = "main"
    """`worker`: in a killable process without torch. Choose it for code that can hang or crash."""
    verifies: bool = False
    """True: a score of 1.0 means the answer is correct. Evaluation counts accuracy and pass@k by these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSpec(ComponentSpec):
    """A rollout backend: generates completions."""

    kind: ClassVar[Kind] = "rollout"

    capabilities: frozenset[str] = frozenset()
    """`weights:shared` (reads the trainer's own module), `weights:stream` (loads named tensors), `overlaps`
    (can generate while the trainer computes, from another thread), `images`, `lora`."""
    serve: str | None = None
    """`pkg.mod:attr` of a function `serve(model, *, host, port, arguments) -> int` that runs the engine as a server
    until it ends, for `grpoctl rollout`; None: the backend has no server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerSpec(ComponentSpec):
    """A trainer backend: owns the weights and updates them."""

    kind: ClassVar[Kind] = "trainer"

    capabilities: frozenset[str] = frozenset()
    """`weights:shared` (has a live module to read), `weights:stream` (gives named tensors), `images`, `lora`, `freeze`.
    A run needs one `weights:*` that trainer and rollout have in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerSpec(ComponentSpec):
    """A tracker: an observer that watches only the runs that name it in `run.report_to`.

    Its target is a factory `make(options, context)` of an object with observer hooks as methods, undecorated or not.
    """

    kind: ClassVar[Kind] = "tracker"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeSpec:
    """A recipe file that a plugin ships."""

    kind: ClassVar[Kind] = "recipe"

    name: str
    """`[a-z][a-z0-9._-]*`: what `--recipe` takes."""
    summary: str
    """One line for listings."""
    package: str
    """The package whose data the file is."""
    path: str
    """The file inside the package: `recipes/countdown-tiny.yaml`."""
    aliases: tuple[str, ...] = ()
    """Other names for the same recipe."""

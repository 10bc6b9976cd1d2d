"""The shapes of the objects that targets lead to. Structural: nothing to inherit.

`Weights` streams are (name, tensor) pairs with the names of the Hugging Face state dict. torch is imported for type
checking only, so that a plugin's entry module stays light.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from grpo_core.types import RolloutGroup, RolloutRequest, Sample, TokenStats, TrainBatch, UpdateReport

if TYPE_CHECKING:
    import torch

    from grpo_core.recipe.schema import ModelSettings

__all__ = [
    "DescribedReward",
    "ExportsAdapters",
    "LoadsAdapters",
    "Preprocessor",
    "RestsBetweenRollouts",
    "RewardFunction",
    "RolloutBackend",
    "RolloutServer",
    "RowSource",
    "ScreensRows",
    "SharesWeights",
    "TrainerBackend",
]


class Preprocessor(Protocol):
    """Makes a sample of a row; None drops the row, counted."""

    def __call__(self, row: Mapping[str, object], /) -> Sample | None: ...


class RowSource(Protocol):
    """Makes rows without a file: the same ones for the same (options, split, seed), and no problem is in two splits."""

    def __call__(
        self, options: object, /, *, split: Literal["train", "evaluation"], seed: int
    ) -> Iterable[Mapping[str, object]]: ...


class RewardFunction(Protocol):
    """Called with keyword arguments, each a list of equal length or one of the run's values; see docs/rewards.md.

    Gives one `float | None | Failed` a completion, or a bare None when it applies to none of them. May be `async def`.
    An asynchronous one may have a method `async aclose()`, awaited when the run ends if it was called at all.
    """

    def __call__(self, **columns: object) -> object: ...


class DescribedReward(RewardFunction, Protocol):
    """A reward object that says where it runs what it is given. Optional: a plain function has no `describe`."""

    def describe(self) -> str:
        """One line for people: where untrusted text is run and how isolated that is, for instance
        `bubblewrap 0.11: no network, no file outside, uid 65534`. Quick, and starts nothing."""
        ...


class ScreensRows(RewardFunction, Protocol):
    """A reward object that knows rows it cannot judge. Optional: a plain function is not asked."""

    def unjudgeable(self, columns: Mapping[str, object], /) -> str | None:
        """Why no completion of a row could be scored (it has no tests, say), or None. `columns` are the row's values by
        the names of the parameters that get them. Asked at launch, about some rows of the reward's own tasks: when it
        can judge none of them the run does not start. Quick, on any thread, starting nothing."""
        ...


class RolloutBackend(Protocol):
    """Draws completions. Built by a factory `make(options, context: BackendContext)`; that it has these methods is
    checked then, and each group that it gives when it comes."""

    def generate(self, requests: Sequence[RolloutRequest]) -> Iterator[RolloutGroup]:
        """Yield one group a request, each as soon as it is complete, in any order. On several ranks it is called by all
        of them, also by one that has nothing to ask. A request may be greedy (`params.greedy`, as evaluations are):
        then the most likely token is taken each time, and the temperature, 0, is not divided by."""
        ...

    def load_weights(self, stream: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Take over the trainer's weights (capability `weights:stream`); completions from now on carry `version`."""
        ...

    def close(self) -> None:
        """Free everything; called once."""
        ...


class SharesWeights(Protocol):
    """A rollout backend with the capability `weights:shared`: it reads the trainer's own module, without a copy."""

    def share(self, module: torch.nn.Module, version: int) -> None:
        """Generate with `module` from now on; completions carry `version`. Called before every rollout."""
        ...


class RestsBetweenRollouts(Protocol):
    """A rollout backend that shares a device with the trainer and can make room on it."""

    def rest(self) -> None:
        """Give memory back until the next `load_weights`, which brings every weight again. Called once the completions
        of a step are there, before the trainer computes; not between rollouts with the same weights."""
        ...


class LoadsAdapters(Protocol):
    """A rollout backend that can take a LoRA adapter alone, from a trainer that `ExportsAdapters`."""

    takes_adapter: bool
    """Whether this run's adapter is to be given to `load_adapter`; otherwise merged weights go to `load_weights`."""

    def load_adapter(self, write: Callable[[Path], None], version: int) -> None:
        """Take over the trainer's adapter: `write(directory)` puts it into a folder that this makes, in peft's layout.
        On several ranks all of them call `write`, and rank 0's does it."""
        ...


class ExportsAdapters(Protocol):
    """A trainer backend that can write its LoRA adapter alone."""

    def export_adapter(self, directory: Path) -> None:
        """Write the adapter in peft's layout into an empty folder; called by all ranks, and rank 0 writes."""
        ...


class RolloutServer(Protocol):
    """What `RolloutSpec.serve` leads to: the engine as a server of its own, for runs elsewhere to connect to."""

    def __call__(self, model: ModelSettings, /, *, host: str, port: int, arguments: Sequence[str]) -> int:
        """Serve the model until interrupted; print how a run connects once it is ready.
        `arguments` are those of the command line that are the engine's own. Gives the exit code."""
        ...


class TrainerBackend(Protocol):
    """Owns the weights and changes them. On several ranks every method is called by all of them together. Built as a
    rollout backend is, and checked in the same way."""

    def logprobs(self, batch: TrainBatch, of: Literal["policy", "reference"]) -> TokenStats:
        """Per-token numbers of every member, without gradient."""
        ...

    def update(self, batch: TrainBatch) -> UpdateReport:
        """One optimiser update, of which this is the rank's share; the metrics are those of all of it. Raises
        `Collapse`, and leaves the weights, when loss or gradient is not finite."""
        ...

    def module(self) -> torch.nn.Module:
        """The live Hugging Face model, for a rollout backend that shares it (capability `weights:shared`)."""
        ...

    def iter_weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Stream every weight under its Hugging Face name (capability `weights:stream`)."""
        ...

    def save(self, directory: Path) -> None:
        """Write all that `restore` needs into `directory`, an empty folder that rank 0 has made."""
        ...

    def restore(self, directory: Path) -> None:
        """Go back to the state that `save` wrote: training goes on bit by bit as it would have."""
        ...

    def export(self, directory: Path) -> None:
        """Write the model in Hugging Face layout into `directory`."""
        ...

    def close(self) -> None:
        """Free everything; called once."""
        ...

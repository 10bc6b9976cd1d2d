"""The trainer's state as files: master weights, AdamW's numbers, the count of updates. No pickle.

    weights.safetensors      under their Hugging Face names, in the precision of the masters
    optimizer.safetensors    exp_avg/<weight>, exp_avg_sq/<weight>, step/<weight>
    trainer.json             format, precision, updates

The learning rate needs nothing: it is a function of the count of updates. Where and when a checkpoint is written, and
that a kill leaves the last one whole, is the loop's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from safetensors import SafetensorError
from torch import Tensor

from grpo_core.errors import CheckpointError
from grpo_core.trainer.tensor_file import TensorFile, write_tensors

__all__ = ["Progress", "read_progress", "read_tensors", "write"]

FORMAT = 1
WEIGHTS_FILE = "weights.safetensors"
OPTIMIZER_FILE = "optimizer.safetensors"
PROGRESS_FILE = "trainer.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The part of the state that is not tensors."""

    updates: int
    """Optimiser updates done, those that were refused included."""
    precision: str
    """`trainer.precision` of the run."""
    format: int = FORMAT
    """Of these files."""


def write(
    directory: Path | None,
    progress: Progress,
    weights: Mapping[str, Tensor],
    optimizer: Mapping[str, Tensor],
    whole: Callable[[Tensor], Tensor] = Tensor.detach,
) -> None:
    """Write all three files, a tensor at a time; `whole` gathers one that is spread over ranks, and ranks that only
    help with that have no directory."""
    try:
        write_tensors(directory and directory / WEIGHTS_FILE, weights, whole)
        write_tensors(directory and directory / OPTIMIZER_FILE, optimizer, whole)
        if directory is not None:
            (directory / PROGRESS_FILE).write_text(json.dumps(asdict(progress)) + "\n", encoding="utf-8")
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{directory}: the trainer's state cannot be written: {error}", hint="is the disk full, or read-only?"
        ) from error


def read_progress(directory: Path, *, precision: str) -> Progress:
    """Read trainer.json, and refuse a state that would not go on as it would have."""
    path = directory / PROGRESS_FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found.get("format") != FORMAT:
            raise CheckpointError(
                f"{path} has format {found.get('format')}, and this version reads {FORMAT}",
                hint="resume with the trainer that the run began with, or start a new run from its exported model",
            )
        progress = Progress(**found)
        if type(progress.updates) is not int or progress.updates < 0:
            raise ValueError(f"updates is {progress.updates!r}, not a whole number from 0")
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}", hint=_HINT) from error
    if progress.precision != precision:
        raise CheckpointError(
            f"{path} is of a run with trainer.precision {progress.precision}, and this one has {precision}",
            hint="resume with the precision the run began with, or start a new run from its exported model",
        )
    return progress


def read_tensors(directory: Path, like: Mapping[str, Tensor]) -> tuple[TensorFile, TensorFile]:
    """Weights and AdamW's numbers, each read when it is asked for; the weights must have the names and shapes of
    `like`."""
    weights, optimizer = _load(directory / WEIGHTS_FILE), _load(directory / OPTIMIZER_FILE)
    _require_same(directory / WEIGHTS_FILE, weights, like)
    strangers = {name for name in optimizer if name.split("/", 1)[-1] not in like}
    if strangers:
        raise CheckpointError(
            f"{directory / OPTIMIZER_FILE} has numbers of weights the model lacks: {min(strangers)}", hint=_HINT
        )
    return weights, optimizer


_HINT = "resume from another checkpoint of the same run and model"


def _load(path: Path) -> TensorFile:
    try:
        return TensorFile(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}", hint=_HINT) from error


def _require_same(path: Path, weights: TensorFile, like: Mapping[str, Tensor]) -> None:
    odd = weights.keys() ^ like.keys()
    if odd:
        name = min(odd)
        missing = "lacks" if name in like else "has a weight the model does not know,"
        raise CheckpointError(f"{path} {missing} {name}", hint=_HINT)
    for name in weights:
        if weights.shape(name) != like[name].shape:
            shapes = f"{list(weights.shape(name))}, and {list(like[name].shape)} in the model"
            raise CheckpointError(f"{path}: {name} has the shape {shapes}", hint=_HINT)

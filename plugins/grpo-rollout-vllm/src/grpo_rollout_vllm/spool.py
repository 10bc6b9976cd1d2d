"""The newest weights on disk: written once as the trainer streams them, read by every server that needs them.

A server gets weights from here at each update, and again whenever it comes back without them; so neither the trainer
nor its other ranks have to stop for it. In memory there is never more than one file of them.

Place in the flow: trainer's stream → **spool** → servers, by the folder itself or over the network.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from grpo_core.api import RolloutError
from grpo_rollout_vllm.fingerprint import Fingerprint

__all__ = ["Spool", "Spooled", "in_precision", "label_of", "passing", "read_tensors", "sweep"]

_FILE_BYTES = 2**29
_PREFIX = "grpo-weights-"
_ELSEWHERE = "choose another folder, that servers on this machine can read, by rollout.options.weights_folder"
_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}

Stream = Iterable[tuple[str, Tensor]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spooled:
    """One update's weights."""

    folder: Path
    """Where the files lie, and nothing else."""
    version: int
    """Optimiser updates that they have seen."""
    fingerprint: str
    """Of all tensors."""
    tensors: int
    """How many there are."""

    @property
    def label(self) -> str:
        """What a server calls these weights once it has them."""
        return label_of(self.version, self.fingerprint)


class Spool:
    """A folder of this process's own, with the newest weights in it."""

    def __init__(self, parent: Path) -> None:
        sweep(parent)
        self._root = parent / f"{_PREFIX}{socket.gethostname()}-{os.getpid()}-{id(self):x}"
        try:
            self._root.mkdir(parents=True)
        except OSError as error:
            raise RolloutError(
                f"the folder of the weights, {parent}, cannot be made or written: {error.strerror}", hint=_ELSEWHERE
            ) from error

    def write(self, stream: Stream, version: int) -> Spooled:
        """Write all of a stream beside what is there; raises `RolloutError` when the disk is full."""
        folder = self.folder_of(version)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        fingerprint = Fingerprint()
        try:
            for number, part in enumerate(_parts(passing(stream, fingerprint)), start=1):
                save_file(part, folder / f"weights-{number:05d}.safetensors")
        except OSError as error:
            raise RolloutError(
                f"the weights for the vLLM servers cannot be written to {folder}: {error.strerror}",
                hint=_ELSEWHERE,
            ) from error
        return Spooled(folder=folder, version=version, fingerprint=fingerprint.text, tensors=fingerprint.tensors)

    def folder_of(self, version: int) -> Path:
        """Where the weights of a version belong."""
        return self._root / f"v{version}"

    def forget_others(self, kept: Path) -> None:
        """Remove older weights; nobody may be reading them any more."""
        for folder in self._root.iterdir():
            if folder != kept:
                shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self._root, ignore_errors=True)


def label_of(version: int, fingerprint: str) -> str:
    """A server's name for weights: which update, and which weights exactly."""
    return f"grpo-{version}-{fingerprint}"


def passing(stream: Stream, fingerprint: Fingerprint) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a stream, each added to the fingerprint as it passes."""
    for name, tensor in stream:
        fingerprint.add(name, tensor)
        yield name, tensor


def in_precision(stream: Stream, precision: str) -> Iterator[tuple[str, Tensor]]:
    """Weights as the trainer computes with them (`fp32` or `bf16`), also where it streams its masters."""
    for name, tensor in stream:
        yield name, tensor.to(_DTYPES[precision]) if tensor.is_floating_point() else tensor


def read_tensors(folder: Path) -> Iterator[tuple[str, Tensor]]:
    """What was written, always in the same order; raises `OSError` or `SafetensorError` for a damaged file before the
    first tensor."""
    files = sorted(folder.glob("weights-*.safetensors"))
    opened = [safe_open(file, framework="pt") for file in files]
    for file in opened:
        for name in file.offset_keys():  # type: ignore[no-untyped-call]
            yield name, file.get_tensor(name)  # type: ignore[no-untyped-call]


def sweep(parent: Path) -> None:
    """Remove what processes of this machine left that were killed."""
    for left in parent.glob(f"{_PREFIX}{socket.gethostname()}-*"):
        pid = left.name.split("-")[-2]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(left, ignore_errors=True)


def _parts(stream: Stream) -> Iterator[dict[str, Tensor]]:
    """The tensors of one file after the other, in main memory."""
    part: dict[str, Tensor] = {}
    size = 0
    for name, tensor in stream:
        if part and size + tensor.nbytes > _FILE_BYTES:
            yield part
            part, size = {}, 0
        # A copy: the trainer may use the same memory for the next one.
        part[name] = tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        size += tensor.nbytes
    if part:
        yield part

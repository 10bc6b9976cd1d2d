"""A LoRA adapter on its way to servers: a folder in peft's layout, and what they call it.

A server that has taken one over has the run's model as it was started with, and the adapter beside it under one name.

Place in the flow: trainer's adapter → **adapter** → server.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import load_file

from grpo_rollout_vllm.fingerprint import Fingerprint
from grpo_rollout_vllm.spool import passing

__all__ = ["ADAPTER_FILE", "ADAPTER_NAME", "AdapterFiles", "adapter_label", "has_own_base", "write_adapter"]

ADAPTER_FILE = "adapter_model.safetensors"
ADAPTER_NAME = "policy"
"""What requests call it."""
_SUFFIX = "-lora"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterFiles:
    """One update's adapter."""

    folder: Path
    """In peft's layout."""
    label: str
    """What a server calls its weights once it has it."""
    fingerprint: str
    """Of the adapter's tensors."""


def adapter_label(version: int, run: str) -> str:
    """A server's name for the weights with the adapter of a run; every rank knows it without seeing the tensors."""
    return f"grpo-{version}-{hashlib.blake2b(run.encode(), digest_size=8).hexdigest()}{_SUFFIX}"


def has_own_base(label: str) -> bool:
    """Whether a server with weights of this label has its model as it was started with."""
    return label == "default" or label.endswith(_SUFFIX)


def write_adapter(write: Callable[[Path], None], folder: Path, label: str) -> AdapterFiles:
    """Have the adapter written into a folder of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write(folder)
    fingerprint = Fingerprint()
    for _ in passing(load_file(folder / ADAPTER_FILE).items(), fingerprint):
        pass
    return AdapterFiles(folder=folder, label=label, fingerprint=fingerprint.text)

"""Whether this machine has room for the processes of a run, asked before any of them is started."""

from __future__ import annotations

import os

import torch

from grpo_core.errors import UsageError
from grpo_core.machine import available_cores, available_memory
from grpo_core.ranks.place import Processes
from grpo_core.recipe.memory import mebibytes

__all__ = [
    "MOST_TIMES",
    "PROCESS_BYTES",
    "gpu_of",
    "memory_warning",
    "process_memory",
    "require_devices",
    "require_memory",
]

MOST_TIMES = 100
"""No machine has so many times the memory of another that a run is planned on."""
PROCESS_BYTES = 300 << 20
"""What a process has before there is a model in it: an interpreter with PyTorch and transformers, as measured."""
_INSIST = "or insist: --oversubscribe"
_HIDE = "or hide the GPUs to train on the CPU: CUDA_VISIBLE_DEVICES="


def require_devices(processes: Processes) -> None:
    """Raise `UsageError` where a process would have no GPU, or where there are none no core, to itself.

    Two processes cannot share a GPU; that they share cores may be meant (`processes.oversubscribe`).
    """
    gpus, asked = _gpus(), processes.per_node
    if gpus and asked > gpus:
        raise _too_few_gpus(gpus, f"--nproc-per-node is {asked}")
    cores = available_cores()
    if not gpus and asked > cores and not processes.oversubscribe:
        raise UsageError(
            f"--nproc-per-node is {asked}, and this machine has {_count(cores, 'core')} for its processes: each would "
            "wait for the others",
            hint=f"start at most {cores} here, {_INSIST}",
        )


def require_memory(processes: Processes, training_bytes: int) -> None:
    """Raise `UsageError` where processes that train on the CPU would take more than the memory that is left, with what
    each needs for training."""
    left = available_memory()
    if left is None or _gpus() or processes.oversubscribe:
        return
    each = PROCESS_BYTES + training_bytes
    if processes.per_node * each <= left:
        return
    fit = left // each
    advice = f"start at most {fit} here" if fit else "train a smaller model, or on a larger machine"
    raise UsageError(
        f"--nproc-per-node is {processes.per_node}, and so many processes of about {mebibytes(each)} each need "
        f"{mebibytes(processes.per_node * each)} of memory: {mebibytes(left)} are left here",
        hint=f"{advice}, {_INSIST}",
    )


def process_memory(per_node: int, *, on_cpu: bool = False) -> tuple[bool, int | None]:
    """Whether processes of a run train on GPUs here, and how many bytes each of `per_node` may take; None: not
    known."""
    if _gpus() and not on_cpu:
        return True, int(torch.cuda.get_device_properties(0).total_memory)
    left = available_memory()
    return False, None if left is None else max(0, left // per_node - PROCESS_BYTES)


def memory_warning(training_bytes: int, *, on_cpu: bool = False) -> str | None:
    """What to tell a person about an estimate of more memory than a process has here; the machine that trains may be
    another. Raises `UsageError` for so much that none has it."""
    gpu = _gpus() > 0 and not on_cpu
    here = torch.cuda.get_device_properties(0).total_memory if gpu else available_memory()
    if here is None or training_bytes <= here:
        return None
    needed = f"a process needs about {mebibytes(training_bytes)} of memory, and has {mebibytes(here)}"
    where = f"{needed} {'on a GPU' if gpu else 'left'} here"
    hint = (
        "lower run.prompts_per_step, rollout.completions_per_prompt, rollout.max_completion_tokens or "
        "trainer.micro_batch_tokens, or take a smaller model; the plan says what needs it"
    )
    if training_bytes > MOST_TIMES * here:
        raise UsageError(f"{where}, not a {MOST_TIMES}th of that", hint=hint)
    return f"{where}; {hint}"


def gpu_of(local_rank: int) -> int | None:
    """The GPU of a process; None: there are none, or they are hidden. Raises `UsageError` where there are too few."""
    gpus = _gpus()
    if local_rank < gpus:
        return local_rank
    if not gpus or os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return None
    raise _too_few_gpus(gpus, f"no one is left for process {local_rank + 1} of it")


def _gpus() -> int:
    """How many GPUs PyTorch sees here."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def _too_few_gpus(gpus: int, so: str) -> UsageError:
    return UsageError(
        f"there {'is' if gpus == 1 else 'are'} {_count(gpus, 'GPU')} on this machine and {so}: two cannot share one",
        hint=f"start at most {_count(gpus, 'process', 'processes')} here, {_HIDE}",
    )


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number} {one if number == 1 else several or f'{one}s'}"

"""How large a run is on its machine: micro-batches found at launch, memory estimated, and measured after a step.

The estimate is of what a process takes beside what it has before a model is loaded. What is measured is resident memory
on a CPU, and on a GPU what PyTorch has allocated there.
"""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from pathlib import Path

import torch

from grpo_core.model.freeze import count_frozen
from grpo_core.model.load import count_parameters, model_config
from grpo_core.model.lora import trainable_parameters
from grpo_core.ranks.place import Processes
from grpo_core.ranks.room import process_memory
from grpo_core.recipe.memory import ModelShape, estimate_memory, mebibytes, shape_of
from grpo_core.recipe.micro_batch import with_micro_batch
from grpo_core.recipe.plan import LaunchPlan

__all__ = [
    "LIBRARY_BYTES",
    "compared",
    "forget_peak",
    "is_on_cpu",
    "is_on_gpu",
    "peak_bytes",
    "planned_shape",
    "resident_bytes",
    "settled",
    "training_bytes",
]

LIBRARY_BYTES = 120 << 20
"""What PyTorch and its libraries take for themselves as they compute for the first time on a CPU, as measured."""
MOST_OFF = 4 / 3
"""An estimate that is further off, either way, is told as a warning."""


def settled(plan: LaunchPlan, longest_prompt: int, processes: Processes) -> LaunchPlan:
    """The plan with what is found at launch: the size of micro-batches."""
    on_gpu, memory = process_memory(processes.per_node, on_cpu=is_on_cpu(plan))
    return with_micro_batch(
        plan,
        planned_shape(plan),
        longest_prompt=longest_prompt,
        ranks=processes.count,
        on_gpu=on_gpu,
        memory=memory,
    )


def training_bytes(plan: LaunchPlan, longest_prompt: int, ranks: int) -> int:
    """What one of `ranks` processes needs of memory beside itself, estimated; of a model of unknown shape its
    weights."""
    shape = planned_shape(plan)
    if shape is None:
        return count_parameters(plan.recipe.model) * 4
    estimate = estimate_memory(plan, shape, longest_prompt=longest_prompt, ranks=ranks)
    return estimate.peak if plan.weights_route == "shared" else estimate.update_peak


def planned_shape(plan: LaunchPlan) -> ModelShape | None:
    """The shape of the plan's model, with its adapter; None where its config has other names for it."""
    model, lora = plan.recipe.model, plan.recipe.trainer.lora
    adapter = None if lora is None else trainable_parameters(model, lora)
    frozen = count_frozen(model, plan.recipe.trainer)
    return shape_of(model_config(model), count_parameters(model), adapter, frozen)


def is_on_cpu(plan: LaunchPlan) -> bool:
    """Whether the trainer's options keep the model off GPUs that there are."""
    return bool(plan.trainer.options.get("device") == "cpu")


def is_on_gpu(plan: LaunchPlan) -> bool:
    """Whether the model of this process is on a GPU."""
    return torch.cuda.is_available() and not is_on_cpu(plan)


def resident_bytes() -> int:
    """Memory of this process now; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * resource.getpagesize()


def forget_peak(*, on_gpu: bool) -> None:
    """Begin to look for the largest use of memory anew, where the system can."""
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
        return
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_bytes(*, on_gpu: bool) -> int:
    """The most memory that this process has had since, where its model is."""
    if on_gpu:
        return int(torch.cuda.max_memory_allocated())
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("VmHWM:"))) << 10
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def compared(estimated: int, measured: int) -> tuple[str, bool]:
    """Both in words, and whether they are too far apart."""
    is_off = not estimated / MOST_OFF <= measured <= estimated * MOST_OFF
    line = f"memory: {mebibytes(measured)} at the peak of the first step, {mebibytes(estimated)} were estimated"
    if is_off:
        line += (
            "; if it does not fit, lower trainer.micro_batch_tokens, and if it leaves room, raise it"
            if measured > estimated
            else "; a larger trainer.micro_batch_tokens may fit"
        )
    return line, is_off

"""What DeepSpeed must find in its process before it is imported or an engine is made: an accelerator, a local rank, a
process group, a quiet log.

The process group is the run's own where there are several ranks; a process that trains alone gets one with itself in
it, for DeepSpeed does without none.
"""

from __future__ import annotations

import atexit
import logging
import os
import warnings
from typing import Any

import torch
import torch.distributed as dist

from grpo_core.api import TrainerError
from grpo_core.backends import BackendContext

__all__ = ["prepare"]


def prepare(device: torch.device, context: BackendContext, *, fp16: bool) -> Any:
    """The imported `deepspeed`. Raises `TrainerError` for `fp16` where the device has none."""
    # Both are read when it is imported, or at each engine: srun sets neither.
    os.environ["DS_ACCELERATOR"] = device.type
    os.environ["LOCAL_RANK"] = str(context.local_rank)
    import deepspeed

    if fp16 and not deepspeed.get_accelerator().is_fp16_supported():
        raise TrainerError(
            f"trainer.options.fp16 is true, and DeepSpeed has no fp16 on this machine's {device.type}",
            hint="set trainer.precision to bf16 and trainer.options.fp16 to false",
        )
    # Its warnings are of an optimiser that it does not know by name, and of calls of its own that torch has renamed.
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"torch\.distributed\.")
    if device.type == "cpu":
        # A kernel for sums through shared memory, which would be compiled at the first start. It needs a compiler, and
        # gloo sums as well.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    if not dist.is_initialized():
        # It stays until the process ends: DeepSpeed keeps groups made of it for the next engine.
        atexit.register(_forget_group)
        dist.init_process_group(_backend(device), store=dist.HashStore(), rank=0, world_size=1)
    deepspeed.init_distributed(dist_backend=_backend(device), auto_mpi_discovery=False, verbose=False)
    return deepspeed


def _backend(device: torch.device) -> str:
    return "gloo" if device.type == "cpu" else "nccl"


def _forget_group() -> None:
    """A rollout engine in the same process may have ended it already."""
    if dist.is_initialized():
        dist.destroy_process_group()

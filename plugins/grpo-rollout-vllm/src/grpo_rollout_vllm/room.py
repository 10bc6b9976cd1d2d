"""Whether this machine has devices for all engine processes that a server's options ask for, asked before any starts:
vLLM finds out once each of them has been started.
"""

from __future__ import annotations

from collections.abc import Sequence

from grpo_core.errors import UsageError
from grpo_core.machine import available_cores

__all__ = ["engine_processes", "require_devices"]

_FACTORS = (
    ("--tensor-parallel-size", "-tp"),
    ("--pipeline-parallel-size", "-pp"),
    ("--data-parallel-size-local", "-dpl"),
)
_DATA_PARALLEL = ("--data-parallel-size", "-dp")
_ELSEWHERE = (("--nnodes", "-n"), ("--distributed-executor-backend",), ("--data-parallel-backend", "-dpb"))
"""With any of these, other machines may have a part of the processes."""


def require_devices(arguments: Sequence[str], *, on_cpu: bool) -> None:
    """Raise `UsageError` for more engine processes than GPUs, or on a CPU than cores."""
    asked = engine_processes(arguments)
    if asked <= 1:
        return
    most = available_cores() if on_cpu else _gpus()
    if asked > most:
        raise UsageError(
            f"the server's options ask for {asked} engine processes, and this machine has {most} "
            f"{'core' if on_cpu else 'GPU'}{'' if most == 1 else 's'}",
            hint="lower --tensor-parallel-size, --pipeline-parallel-size or --data-parallel-size; who means it starts "
            "vLLM by hand (docs/engines.md)",
        )


def engine_processes(arguments: Sequence[str]) -> int:
    """How many processes with a device of their own vLLM will start here; 1 where that is not for us to say."""
    if any(_value(arguments, names) is not None for names in _ELSEWHERE):
        return 1
    processes = 1
    for names in _FACTORS:
        number = _number(arguments, names)
        if number is None and names[0] == "--data-parallel-size-local":
            number = _number(arguments, _DATA_PARALLEL)
        processes *= number or 1
    return processes


def _number(arguments: Sequence[str], names: Sequence[str]) -> int | None:
    text = _value(arguments, names)
    return int(text) if text is not None and text.isdecimal() else None  # vLLM says what is wrong with others


def _value(arguments: Sequence[str], names: Sequence[str]) -> str | None:
    """The last value of an option, which is the one that counts; vLLM takes `_` for `-`."""
    found = None
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name.replace("_", "-") in names:
            following = arguments[place + 1] if place + 1 < len(arguments) else None
            found = value if equals else following
    return found


def _gpus() -> int:
    import torch

    return torch.cuda.device_count()

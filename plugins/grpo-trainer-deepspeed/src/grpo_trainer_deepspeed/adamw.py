"""AdamW as DeepSpeed steps it: which weights decay, and a step that can be withheld.

torch's AdamW is used wherever it can be, so that a resumed run is bit-identical; on parts of weights in main memory
DeepSpeed's own is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from grpo_core.backends import TrainerSettings

__all__ = ["make_adamw"]


def make_adamw(parameters: Iterable[nn.Parameter], settings: TrainerSettings, *, on_cpu: bool) -> Any:
    """An optimiser over those parameters that are trained; its step does nothing while its `withheld` is true."""
    if on_cpu:
        from deepspeed.ops.adam import DeepSpeedCPUAdam

        make = _withholding(DeepSpeedCPUAdam)
    else:
        make = _withholding(torch.optim.AdamW)
    return make(
        _by_decay([parameter for parameter in parameters if parameter.requires_grad], settings.weight_decay),
        lr=settings.learning_rate,
        betas=(settings.adam_beta1, settings.adam_beta2),
        eps=settings.adam_epsilon,
    )


def _withholding(base: Any) -> Callable[..., Any]:
    class Withholding(base):  # type: ignore[misc]
        withheld = False

        def step(self, *arguments: Any, **more: Any) -> Any:
            return None if self.withheld else super().step(*arguments, **more)

    Withholding.__name__ = Withholding.__qualname__ = base.__name__
    return Withholding


def _by_decay(parameters: list[nn.Parameter], weight_decay: float) -> list[dict[str, Any]]:
    """Decay is for matrices: norms and biases set scales that have no reason to be near 0."""

    def is_matrix(parameter: nn.Parameter) -> bool:
        return len(getattr(parameter, "ds_shape", parameter.shape)) >= 2  # what is spread has no shape of its own

    if weight_decay == 0.0:  # DeepSpeed lays out, and communicates, each group by itself
        return [{"params": parameters, "weight_decay": 0.0}]
    matrices = [parameter for parameter in parameters if is_matrix(parameter)]
    others = [parameter for parameter in parameters if not is_matrix(parameter)]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]

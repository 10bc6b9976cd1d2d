"""Copies a stream of named weights into a model: every weight exactly as it should be, or an error that names them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from grpo_core.errors import RolloutError

__all__ = ["copy_weights"]

SHOWN = 3


def copy_weights(model: nn.Module, stream: Iterable[tuple[str, Tensor]]) -> None:
    """Copy by Hugging Face name. Of weights that are tied one name is enough. Raises `RolloutError`.

    The stream is read to its end before anything is raised, as it may be collective.
    """
    targets = {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers())}
    copied: set[int] = set()
    faults: list[str] = []
    with torch.no_grad():
        for name, value in stream:
            target = targets.get(name)
            if target is None:
                faults.append(f"{name} is not one of the model's")
            elif target.shape != value.shape:
                faults.append(f"{name} has the shape {list(value.shape)}, in the model {list(target.shape)}")
            else:
                target.copy_(value)
                copied.add(id(target))
    missing = [name for name, weight in model.named_parameters() if id(weight) not in copied]
    faults += [f"{name} did not come" for name in missing]
    if faults:
        raise RolloutError(
            f"the trainer's weights do not fit {type(model).__name__}: {_shown(faults)}",
            hint="trainer and rollout must load the same model.path",
        )


def _shown(faults: Sequence[str]) -> str:
    more = len(faults) - SHOWN
    return "; ".join(faults[:SHOWN]) + (f"; and {more} more" if more > 0 else "")

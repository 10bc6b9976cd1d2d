"""Where a model lives and what of it is stored: small questions that every trainer asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import Tensor, nn

from grpo_core.backends import BackendContext
from grpo_core.errors import TrainerError
from grpo_core.trainer.shared_attention import recomputing

__all__ = ["DTYPES", "checkpoint_layers", "choose_device", "named_tensors"]

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
"""Of `trainer.precision`."""


def choose_device(name: Literal["auto", "cpu", "cuda"], context: BackendContext) -> torch.device:
    """Where this rank's model lives: on several ranks of a machine each has a GPU of its own. `name` is the setting
    `trainer.options.device`; raises `TrainerError` for cuda where there is no GPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise TrainerError(
            "trainer.options.device is cuda, and PyTorch sees no GPU here",
            hint="leave it at auto, or install a build of PyTorch for this machine's driver",
        )
    return torch.device("cuda", context.local_rank)


def named_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Every weight and every buffer that is saved, by name; tied ones once, under the first of their names."""
    yield from model.named_parameters()
    saved = model.state_dict().keys()
    yield from ((name, buffer) for name, buffer in model.named_buffers() if name in saved)


def checkpoint_layers(model: Any) -> None:
    """Let a Hugging Face model recompute its activations in the backward pass, in training mode. Raises `TrainerError`
    for a model that cannot."""
    if not model.supports_gradient_checkpointing:
        raise TrainerError(
            f"{type(model).__name__} has no gradient checkpointing",
            hint="set trainer.gradient_checkpointing to false, and trainer.micro_batch_tokens lower to save memory",
        )
    ways = {"use_reentrant": False, "context_fn": recomputing}
    if hasattr(model, "activation_checkpointing_enable"):  # transformers 5.19 has only the older name
        model.activation_checkpointing_enable(activation_checkpointing_kwargs=ways)
    else:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=ways)
    # It also made the embeddings' output require a gradient, for adapters. Ours does, and generation has no use for it.
    model.disable_input_require_grads()

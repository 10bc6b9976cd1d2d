"""Takes a causal language model apart into backbone and head, so that logits need not exist for all tokens at once.

Families scale or cap their logits after the output embedding; `head_of` knows these ways. A model with one of its
own is found out by the trainer's check on its first batch (`trainer/policy.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from grpo_core.errors import TrainerError

__all__ = ["Head", "backbone_of", "head_of"]

Head = Callable[[torch.Tensor], torch.Tensor]
"""Hidden states [..., H] -> logits [..., V], as the model's own forward makes them."""


def backbone_of(model: Any) -> nn.Module:
    """The part that turns token ids into the `last_hidden_state` that the head reads."""
    backbone: nn.Module = model.base_model
    if backbone is model:  # Llama 4 has it under another name than it says
        backbone = getattr(model, "model", model)
    if backbone is model:
        raise TrainerError(f"{type(model).__name__} has no backbone apart from its head", hint=_HINT)
    return backbone


def head_of(model: Any, project: Head | None = None) -> Head:
    """What follows the backbone: output embedding, then the family's scaling (Granite, Cohere, Falcon-H1) or soft cap
    (Gemma 2 and 3).

    `project` is called in place of the output embedding's module, for a wrapper that must not see how often it is:
    chunks are not the same number on every rank.
    """
    projection = project or model.get_output_embeddings()
    if projection is None:
        raise TrainerError(f"{type(model).__name__} has no output embedding", hint=_HINT)
    config = model.config.get_text_config()
    divisor = _number(config, "logits_scaling")
    factors = [factor for name in ("logit_scale", "lm_head_multiplier") if (factor := _number(config, name))]
    cap = _number(config, "final_logit_softcapping")

    def head(hidden: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = projection(hidden)
        for factor in factors:
            logits = logits * factor
        if divisor is not None:
            logits = logits / divisor
        return logits if cap is None else torch.tanh(logits / cap) * cap

    return head


_HINT = "train a decoder-only language model of the Llama kind (a backbone with a linear head)"


def _number(config: Any, name: str) -> float | None:
    value = getattr(config, name, None)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

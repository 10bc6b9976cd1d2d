"""Runs a Hugging Face causal model for generation: without gradient, as in eval mode, one call's logits at a time.

What all ways of decoding share. The model is left as it was found: the trainer may have it in training mode.

Shapes: P prompts, L tokens of the longest, B sequences, T tokens, R rows of positions (3 for M-RoPE, else 1),
V vocabulary.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from grpo_core.model.routers import router_arguments
from grpo_core.rollout.prompts import Prompts

__all__ = [
    "Decoder",
    "Padded",
    "call",
    "decoding",
    "keeps_few_logits",
    "last_logits",
    "left_padded",
    "parameters_of",
    "passes",
    "takes_positions",
]


class Decoder(Protocol):
    """A batch of sequences under way: prompts in, then one token each at a time."""

    def prefill(self, prompts: Prompts, repeats: Sequence[int]) -> Tensor:
        """[B, V] The logits after each prompt, `repeats[p]` rows for prompt p, one after the other."""
        ...

    def step(self, tokens_B: Tensor) -> Tensor:
        """[B, V] The logits after one more token each."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with these rows only: row i from now on is what was row `rows[i]`."""
        ...


class Padded(NamedTuple):
    """Prompts in one tensor, padded on the left, so that all end at the same column."""

    ids_PL: Tensor
    mask_PL: Tensor | None
    """bool; None: they are of one length, nothing is padding."""
    positions_RPL: Tensor
    next_P: Tensor
    """The position of the first token after each prompt, in all R rows."""


def left_padded(prompts: Prompts, device: torch.device) -> Padded:
    """Pad with token 0, which the mask hides."""
    longest = max(map(len, prompts.ids))
    ids = [[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts.ids]
    padding_P1 = torch.tensor([[longest - len(prompt)] for prompt in prompts.ids], device=device)
    columns_PL = torch.arange(longest, device=device).expand(len(prompts), longest)
    mask_PL = columns_PL >= padding_P1 if min(map(len, prompts.ids)) < longest else None
    return Padded(
        torch.tensor(ids, device=device),
        mask_PL,
        prompts.padded_positions(longest).to(device),
        prompts.next_positions().to(device),
    )


def passes(rows: Sequence[Sequence[int]], budget_tokens: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows whose padded size is within the budget; at least one row each."""
    start, longest = 0, 0
    for end, row in enumerate(rows):
        longest = max(longest, len(row))
        if end > start and longest * (end + 1 - start) > budget_tokens:
            yield start, end
            start, longest = end, len(row)
    yield start, len(rows)


def last_logits(model: Any, ids_BT: Tensor, positions_RBT: Tensor, kv_cache: Any, **inputs: Any) -> Tensor:
    """[B, V] Of the last token of each row; appends to the cache."""
    logits_BV: Tensor = call(model, ids_BT, positions_RBT, kv_cache, **inputs).logits[:, -1]
    return logits_BV


def call(
    model: Any, ids_BT: Tensor, positions_RBT: Tensor, kv_cache: Any = None, *, keep: int | Tensor = 1, **inputs: Any
) -> Any:
    """What the model gives for the rows; it keeps nothing where there is no cache. Its logits are of the last `keep`
    columns, or of those that `keep` lists; of all columns where the family cannot leave any out."""
    # Older transformers call the cache past_key_values.
    name = "cache" if "cache" in parameters_of(model) else "past_key_values"
    if kv_cache is not None or name in parameters_of(model):
        inputs[name] = kv_cache
    if takes_positions(model):  # some families take none
        # Always given: a model with M-RoPE would take the offset of whatever it read last.
        inputs["position_ids"] = positions_RBT if len(positions_RBT) > 1 else positions_RBT[0]
    if keeps_few_logits(model):
        inputs["logits_to_keep"] = keep
    return model(ids_BT, use_cache=kv_cache is not None, **inputs, **router_arguments(model, asked=False))


def keeps_few_logits(model: Any) -> bool:
    """Whether the model can compute the logits of some columns only."""
    return "logits_to_keep" in parameters_of(model)


def takes_positions(model: Any) -> bool:
    """Whether each token's position can be given; else they follow from mask or cache."""
    return "position_ids" in parameters_of(model)


def parameters_of(model: Any) -> frozenset[str]:
    """The names of what the model's forward takes."""
    return _parameters(type(model).forward)


@cache
def _parameters(forward: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(forward).parameters)


@contextmanager
def decoding(model: nn.Module) -> Iterator[None]:
    """No gradient, no dropout, no gradient checkpointing inside; each module's own mode is restored behind.

    Not `inference_mode`: what a model keeps for itself (rotary frequencies) must stay usable in training.
    """
    in_training = [module for module in model.modules() if module.training]
    try:
        for module in in_training:
            module.training = False
        with torch.no_grad():
            yield
    finally:
        for module in in_training:
            module.training = True

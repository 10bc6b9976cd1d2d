"""Decoding with the model's own attention and cache, which expands the prompt for each member.

What is used where shared prefixes do not fit: linear attention, state spaces, attention with a part of its own.

Shapes: P prompts, L prompt columns, B sequences, R rows of positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from grpo_core.rollout.forward import last_logits, left_padded
from grpo_core.rollout.prompts import Prompts

__all__ = ["PlainDecoder"]


class PlainDecoder:
    """A `Decoder` on transformers' `DynamicCache`."""

    def __init__(self, model: Any, *, masks_steps: bool = True) -> None:
        """`masks_steps`: a step is given the mask of all columns so far, as attention needs it. Models of states alone
        (Mamba) take it for that of the new column."""
        self._model = model
        self._masks_steps = masks_steps
        self._cache = DynamicCache(config=model.config)
        self._mask: Tensor
        self._next_B: Tensor
        self._position_rows = 1

    def prefill(self, prompts: Prompts, repeats: Sequence[int]) -> Tensor:
        """See `Decoder`."""
        padded = left_padded(prompts, self._model.device)
        mask_PL = torch.ones_like(padded.ids_PL, dtype=torch.bool) if padded.mask_PL is None else padded.mask_PL
        logits_PV = last_logits(
            self._model,
            padded.ids_PL,
            padded.positions_RPL,
            self._cache,
            attention_mask=mask_PL.long(),
            **prompts.features.arguments(range(len(prompts))),
        )
        rows = [p for p, count in enumerate(repeats) for _ in range(count)]
        self._mask = mask_PL
        self._next_B = padded.next_P
        self._position_rows = len(padded.positions_RPL)
        self.keep(rows)
        return logits_PV[rows]

    def step(self, tokens_B: Tensor) -> Tensor:
        """See `Decoder`."""
        positions_RB1 = self._next_B[:, None].expand(self._position_rows, -1, -1)
        self._next_B = self._next_B + 1
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(tokens_B), 1)], dim=1)
        mask = self._mask.long() if self._masks_steps else None
        return last_logits(self._model, tokens_B[:, None], positions_RB1, self._cache, attention_mask=mask)

    def keep(self, rows: Sequence[int]) -> None:
        """See `Decoder`."""
        rows_B = torch.tensor(rows, device=self._model.device)
        self._cache.reorder_cache(rows_B)
        self._mask = self._mask[rows_B]
        self._next_B = self._next_B[rows_B]

"""Decoding with the model's own attention and cache, which expands the prompt for each member.

What is used where shared prefixes do not fit: linear attention, state spaces, attention with a part of its own.

Shapes: P prompts, L prompt columns, B sequences, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from grpo_core.rollout.forward import last_logits, left_padded

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
        self._positions_B: Tensor

    def prefill(self, prompts: Sequence[Sequence[int]], repeats: Sequence[int]) -> Tensor:
        """See `Decoder`."""
        padded = left_padded(prompts, self._model.device)
        mask_PL = torch.ones_like(padded.ids_PL, dtype=torch.bool) if padded.mask_PL is None else padded.mask_PL
        logits_PV = last_logits(
            self._model, padded.ids_PL, padded.positions_PL, self._cache, attention_mask=mask_PL.long()
        )
        rows = [p for p, count in enumerate(repeats) for _ in range(count)]
        self._mask = mask_PL
        self._positions_B = padded.positions_PL[:, -1]
        self.keep(rows)
        return logits_PV[rows]

    def step(self, tokens_B: Tensor) -> Tensor:
        """See `Decoder`."""
        self._positions_B = self._positions_B + 1
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(tokens_B), 1)], dim=1)
        mask = self._mask.long() if self._masks_steps else None
        return last_logits(self._model, tokens_B[:, None], self._positions_B[:, None], self._cache, attention_mask=mask)

    def keep(self, rows: Sequence[int]) -> None:
        """See `Decoder`."""
        rows_B = torch.tensor(rows, device=self._model.device)
        self._cache.reorder_cache(rows_B)
        self._mask = self._mask[rows_B]
        self._positions_B = self._positions_B[rows_B]

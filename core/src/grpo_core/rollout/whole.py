"""Decoding without memory: every token is drawn after a forward over all tokens before it.

Slow, and right for every causal model, as it is how the trainer computes: padding is on the right, and no token looks
there.

Shapes: B sequences, T tokens of the longest, U different lengths, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from grpo_core.rollout.forward import call, keeps_few_logits, passes

__all__ = ["WholeDecoder"]


class WholeDecoder:
    """A `Decoder` that forwards at most `budget_tokens` tokens at once, padding included; a longer sequence alone."""

    def __init__(self, model: Any, *, budget_tokens: int) -> None:
        self._model = model
        self._budget_tokens = budget_tokens
        self._rows: list[list[int]] = []

    def prefill(self, prompts: Sequence[Sequence[int]], repeats: Sequence[int]) -> Tensor:
        """See `Decoder`."""
        rows = [p for p, count in enumerate(repeats) for _ in range(count)]
        self._rows = [list(prompts[p]) for p in rows]
        return self._logits(prompts)[rows]

    def step(self, tokens_B: Tensor) -> Tensor:
        """See `Decoder`."""
        for row, token in zip(self._rows, tokens_B.tolist(), strict=True):
            row.append(token)
        return self._logits(self._rows)

    def keep(self, rows: Sequence[int]) -> None:
        """See `Decoder`."""
        self._rows = [list(self._rows[row]) for row in rows]

    def _logits(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """[B, V] After each row."""
        order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
        by_length = [rows[row] for row in order]
        logits_BV = torch.cat(
            [self._pass(by_length[start:end]) for start, end in passes(by_length, self._budget_tokens)]
        )
        return logits_BV[torch.tensor(order).argsort()]

    def _pass(self, rows: Sequence[Sequence[int]]) -> Tensor:
        device = self._model.device
        ids_BT = pad_sequence([torch.tensor(row) for row in rows], batch_first=True).to(device)
        positions_BT = torch.arange(ids_BT.shape[1], device=device).expand_as(ids_BT)
        columns = [len(row) - 1 for row in rows]
        kept = sorted(set(columns))
        logits = call(self._model, ids_BT, positions_BT, keep=torch.tensor(kept, device=device)).logits
        places = [kept.index(column) for column in columns] if keeps_few_logits(self._model) else columns
        picked: Tensor = logits[torch.arange(len(rows)), places]
        return picked

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
from grpo_core.rollout.prompts import Prompts

__all__ = ["WholeDecoder"]


class WholeDecoder:
    """A `Decoder` that forwards at most `budget_tokens` tokens at once, padding included; a longer sequence alone."""

    def __init__(self, model: Any, *, budget_tokens: int) -> None:
        self._model = model
        self._budget_tokens = budget_tokens
        self._prompts: Prompts
        self._rows: list[list[int]] = []
        self._prompt_of: list[int] = []

    def prefill(self, prompts: Prompts, repeats: Sequence[int]) -> Tensor:
        """See `Decoder`."""
        self._prompts = prompts
        self._prompt_of = [p for p, count in enumerate(repeats) for _ in range(count)]
        self._rows = [list(prompts.ids[p]) for p in self._prompt_of]
        return self._logits(prompts.ids, range(len(prompts)))[self._prompt_of]

    def step(self, tokens_B: Tensor) -> Tensor:
        """See `Decoder`."""
        for row, token in zip(self._rows, tokens_B.tolist(), strict=True):
            row.append(token)
        return self._logits(self._rows, self._prompt_of)

    def keep(self, rows: Sequence[int]) -> None:
        """See `Decoder`."""
        self._rows = [list(self._rows[row]) for row in rows]
        self._prompt_of = [self._prompt_of[row] for row in rows]

    def _logits(self, rows: Sequence[Sequence[int]], prompt_of: Sequence[int]) -> Tensor:
        """[B, V] After each row."""
        order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
        by_length, prompts = [rows[row] for row in order], [prompt_of[row] for row in order]
        logits_BV = torch.cat(
            [
                self._pass(by_length[start:end], prompts[start:end])
                for start, end in passes(by_length, self._budget_tokens)
            ]
        )
        return logits_BV[torch.tensor(order).argsort()]

    def _pass(self, rows: Sequence[Sequence[int]], prompt_of: Sequence[int]) -> Tensor:
        device = self._model.device
        ids_BT = pad_sequence([torch.tensor(row) for row in rows], batch_first=True).to(device)
        own = self._prompts.part(prompt_of)
        positions_RBT = own.continued_positions(ids_BT.shape[1]).to(device)
        columns = [len(row) - 1 for row in rows]
        kept = sorted(set(columns))
        images = own.features.arguments(range(len(own)))
        logits = call(self._model, ids_BT, positions_RBT, keep=torch.tensor(kept, device=device), **images).logits
        places = [kept.index(column) for column in columns] if keeps_few_logits(self._model) else columns
        picked: Tensor = logits[torch.arange(len(rows)), places]
        return picked

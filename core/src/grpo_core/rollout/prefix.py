"""Decoding that keeps each prompt's keys and values once, however many completions it has.

For models whose layers all are full or sliding-window attention. `choose_decoder` compares it with the plain way on
the first prompts a model is asked, and says so where it does not hold.

Shapes: P prompts, L prompt columns, B sequences, K key-value heads, D of one head, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from grpo_core.model.attention import attention_named
from grpo_core.rollout import prefix_attention
from grpo_core.rollout.forward import Padded, last_logits, left_padded, passes
from grpo_core.rollout.prefix_cache import PrefixCache, PrefixLayer
from grpo_core.rollout.prompts import Prompts

__all__ = ["PrefixDecoder"]


class PrefixDecoder:
    """A `Decoder` on `PrefixCache`; prompts are read in passes of at most `prefill_tokens`."""

    def __init__(self, model: Any, *, max_tokens: int, prefill_tokens: int) -> None:
        self._model = model
        self._max_tokens = max_tokens
        self._prefill_tokens = prefill_tokens
        self._cache: PrefixCache
        self._next_B: Tensor
        self._position_rows = 1

    def prefill(self, prompts: Prompts, repeats: Sequence[int]) -> Tensor:
        """See `Decoder`. Prompts of like length should be neighbours: less padding."""
        padded, device = left_padded(prompts, self._model.device), self._model.device
        read = [self._read(prompts.part(range(start, end))) for start, end in passes(prompts.ids, self._prefill_tokens)]
        prompt_of = [p for p, count in enumerate(repeats) for _ in range(count)]
        layers = [
            PrefixLayer(
                _stacked([keys for keys, _ in layer], padded),
                _stacked([values for _, values in layer], padded),
                len(prompt_of),
                self._max_tokens,
            )
            for layer in zip(*(layers for _, layers in read), strict=True)
        ]
        padding_PL = None
        if padded.mask_PL is not None:
            padding_PL = torch.zeros(padded.mask_PL.shape, device=device)
            padding_PL.masked_fill_(~padded.mask_PL, torch.finfo(torch.float32).min)
        self._cache = PrefixCache(layers, padding_PL, prompt_of)
        prompt_of_B = torch.tensor(prompt_of, device=device)
        self._next_B = padded.next_P[prompt_of_B]
        self._position_rows = len(padded.positions_RPL)
        return torch.cat([logits for logits, _ in read])[prompt_of_B]

    def step(self, tokens_B: Tensor) -> Tensor:
        """See `Decoder`."""
        positions_RB1 = self._next_B[:, None].expand(self._position_rows, -1, -1)
        self._next_B = self._next_B + 1
        with attention_named(self._model.config.get_text_config(), prefix_attention.NAME):
            return last_logits(
                self._model,
                tokens_B[:, None],
                positions_RB1,
                self._cache,
                **{prefix_attention.CACHE_ARGUMENT: self._cache},
            )

    def keep(self, rows: Sequence[int]) -> None:
        """See `Decoder`."""
        self._cache.keep(rows)
        self._next_B = self._next_B[torch.tensor(rows, device=self._next_B.device)]

    def _read(self, prompts: Prompts) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """The logits after each prompt, and the keys and values of each layer."""
        padded = left_padded(prompts, self._model.device)
        cache = DynamicCache(config=self._model.config)
        mask = None if padded.mask_PL is None else padded.mask_PL.long()
        images = prompts.features.arguments(range(len(prompts)))
        logits = last_logits(self._model, padded.ids_PL, padded.positions_RPL, cache, attention_mask=mask, **images)
        return logits, [(layer.keys, layer.values) for layer in cache.layers]


def _stacked(parts: Sequence[Tensor], padded: Padded) -> Tensor:
    """[P, K, L, D] The keys or values of all passes, right-aligned; 0 at padding, where a model may leave NaN."""
    columns = max(part.shape[2] for part in parts)
    _, heads, _, width = parts[0].shape
    whole_PKLD = parts[0].new_zeros(len(padded.ids_PL), heads, columns, width)
    start = 0
    for part in parts:
        whole_PKLD[start : start + len(part), :, columns - part.shape[2] :] = part
        start += len(part)
    if padded.mask_PL is not None:
        whole_PKLD.masked_fill_(~padded.mask_PL[:, None, -columns:, None], 0.0)
    return whole_PKLD

"""Chooses how a model decodes: the shared-prefix way where it gives the plain way's logits, else the plain way.

Checked once a model, on the first prompts it is asked: a family whose attention has a part of its own is found out
here, and the run is slower instead of wrong.

Shapes: B sequences, V vocabulary.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from grpo_core.rollout.forward import Decoder, decoding, takes_positions
from grpo_core.rollout.plain import PlainDecoder
from grpo_core.rollout.prefix import PrefixDecoder, has_plain_layers

__all__ = ["MakeDecoder", "choose_decoder"]

MakeDecoder = Callable[[int], Decoder]
"""Given the most tokens of a completion, a decoder for one wave."""

CHECKED_MEMBERS = 2
CHECKED_TOKENS = 3
MAX_MEAN_GAP_NATS = {torch.float32: 1e-3, torch.float64: 1e-6}
MAX_MEAN_GAP_LOW_PRECISION_NATS = 0.05
"""Mean difference of all tokens' log-probabilities."""

_log = logging.getLogger(__name__)


def choose_decoder(model: Any, prompts: Sequence[Sequence[int]], *, prefill_tokens: int) -> MakeDecoder:
    """Compare both ways on the shortest and the longest of the prompts; warns when it falls back."""

    def prefix(max_tokens: int) -> Decoder:
        return PrefixDecoder(model, max_tokens=max_tokens, prefill_tokens=prefill_tokens)

    def plain(max_tokens: int) -> Decoder:
        return PlainDecoder(model)

    fault = _fault(model, prefix(CHECKED_TOKENS), plain(CHECKED_TOKENS), prompts)
    if fault is None:
        _log.info("%s decodes with shared prefixes", type(model).__name__)
        return prefix
    _log.warning(
        "%s decodes the plain way, slower and every completion with a copy of its prompt's cache: %s",
        type(model).__name__,
        fault,
    )
    return plain


def _fault(model: Any, prefix: Decoder, plain: Decoder, prompts: Sequence[Sequence[int]]) -> str | None:
    """Why the shared-prefix way does not do; None: it does."""
    if not has_plain_layers(model):
        return "it has layers other than full and sliding-window attention"
    if not takes_positions(model):
        return "it takes no position ids"
    checked = sorted({min(prompts, key=len), max(prompts, key=len)}, key=len)
    with decoding(model):
        expected = _logits(plain, checked)
        try:
            found = _logits(prefix, checked)
        except (AttributeError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
            return f"its attention does not take the shared prefix ({type(error).__name__}: {error})"
    return _difference(expected, found)


def _logits(decoder: Decoder, prompts: Sequence[Sequence[int]]) -> Tensor:
    """[CHECKED_TOKENS, B, V] Of members that go on with the first tokens of the prompts."""
    logits = decoder.prefill(prompts, [CHECKED_MEMBERS] * len(prompts))
    tokens = [prompt[member % len(prompt)] for prompt in prompts for member in range(CHECKED_MEMBERS)]
    seen = []
    for _ in range(CHECKED_TOKENS):
        logits = decoder.step(torch.tensor(tokens, device=logits.device))
        seen.append(logits)
    return torch.stack(seen)


def _difference(expected: Tensor, found: Tensor) -> str | None:
    limit = MAX_MEAN_GAP_NATS.get(expected.dtype, MAX_MEAN_GAP_LOW_PRECISION_NATS)
    gap = float((expected.float().log_softmax(-1) - found.float().log_softmax(-1)).abs().mean())
    if gap <= limit or not torch.isfinite(expected).all():
        return None  # NaN weights are reported where tokens are drawn
    return f"with shared prefixes its log-probabilities are {gap:.2g} nats off (at most {limit:.2g} was expected)"

"""Attention of one new token a sequence over [its prompt, its own tokens], with each prompt read once for all.

The members of a prompt ask it together, in one matrix product; its answer then joins each member's own softmax as
one more column, whose score is the logarithm of the prompt's sum of exponentials. The same numbers as attention over
the concatenation, up to rounding.

Registered with transformers' attention interface as `NAME`. It knows scaling, soft caps and sliding windows; a family
with more (sinks, position biases) is found out by `choose.py`.

Shapes: B sequences, P prompts, S seats a prompt, H heads, K key-value heads, R = H / K, D of one head, L prompt
columns, T own tokens.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface

from grpo_core.rollout.prefix_cache import PrefixCache, PrefixLayer, Seating

__all__ = ["CACHE_ARGUMENT", "NAME"]

NAME = "grpo_core_prefix"
CACHE_ARGUMENT = "grpo_core_prefix_cache"
"""Models pass arguments that they don't know on to the attention function: so it gets the cache."""


def prefix_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """[B, H, 1, D] -> [B, 1, H, D]. Keys and values, the new token's included, are in the cache."""
    cache: PrefixCache = kwargs[CACHE_ARGUMENT]
    layer = cache.layers[module.layer_idx]
    B, H, _, D = query.shape
    K = layer.prompt_keys_PKLD.shape[1]
    query_BKRD = query.reshape(B, K, H // K, D) * (D**-0.5 if scaling is None else scaling)
    own_keys_BKTD, own_values_BKTD = layer.own_keys, layer.own_values
    first_prompt, first_own = _window_starts(layer, own_keys_BKTD.shape[2], sliding_window)
    own_keys_BKTD, own_values_BKTD = own_keys_BKTD[:, :, first_own:], own_values_BKTD[:, :, first_own:]
    scores_BKRT = _capped(_product(query_BKRD, own_keys_BKTD.transpose(2, 3)), softcap)
    if first_prompt >= layer.prompt_keys_PKLD.shape[2]:
        weights_BKRT = scores_BKRT.softmax(-1).to(query.dtype)
        return _product(weights_BKRT, own_values_BKTD).reshape(B, 1, H, D), None
    answer_BKRD, score_BKR1 = _ask_prompts(cache, layer, query_BKRD, first_prompt, softcap)
    weights = torch.cat([scores_BKRT, score_BKR1], dim=-1).softmax(-1).to(query.dtype)
    own_BKRD = _product(weights[..., :-1], own_values_BKTD)
    return torch.addcmul(own_BKRD, answer_BKRD, weights[..., -1:]).reshape(B, 1, H, D), None


AttentionInterface.register(NAME, prefix_attention)


def _ask_prompts(
    cache: PrefixCache, layer: PrefixLayer, query_BKRD: Tensor, first: int, softcap: float | None
) -> tuple[Tensor, Tensor]:
    """What each sequence's prompt answers [B, K, R, D], and its score [B, K, R, 1]: log sum exp."""
    seating = cache.seating
    keys_PKLD, values_PKLD = layer.prompt_keys_PKLD[:, :, first:], layer.prompt_values_PKLD[:, :, first:]
    scores = _capped(_product(_to_prompts(query_BKRD, seating), keys_PKLD.transpose(2, 3)), softcap)
    if cache.padding_PL is not None:
        scores = scores + cache.padding_PL[:, None, None, -keys_PKLD.shape[2] :]
    weights = scores.softmax(-1)
    # The largest weight is exp(largest score) / sum: so the sum's logarithm costs no second pass of exp.
    score = scores.amax(-1, keepdim=True) - weights.amax(-1, keepdim=True).log_()
    answer = _product(weights.to(query_BKRD.dtype), values_PKLD)
    return _to_sequences(answer, seating), _to_sequences(score, seating)


def _to_prompts(x_BKRD: Tensor, seating: Seating) -> Tensor:
    """[B, K, R, D] -> [P, K, S * R, D]."""
    K, R, D = x_BKRD.shape[1:]
    x_PSKRD = x_BKRD[seating.sequence_PS].view(seating.prompts, seating.seats, K, R, D)
    return x_PSKRD.transpose(1, 2).reshape(seating.prompts, K, seating.seats * R, D)


def _to_sequences(x_PKSRD: Tensor, seating: Seating) -> Tensor:
    """[P, K, S * R, D] -> [B, K, R, D]."""
    P, K, SR, D = x_PKSRD.shape
    x_PSKRD = x_PKSRD.view(P, K, seating.seats, SR // seating.seats, D).transpose(1, 2)
    return x_PSKRD.reshape(P * seating.seats, K, -1, D)[seating.seat_B]


def _window_starts(layer: PrefixLayer, own: int, window: int | None) -> tuple[int, int]:
    """The first prompt column and the first own token that the newest token, itself one of `own`, sees."""
    if window is None:
        return 0, 0
    columns = layer.prompt_keys_PKLD.shape[2]
    return max(0, columns + own - window), max(0, own - window)


def _product(left: Tensor, right: Tensor) -> Tensor:
    """Batched over the first two dimensions without copying the right side, which a 4-d matmul would do to a view."""
    product = torch.bmm(left.flatten(0, 1), right.flatten(0, 1))
    return product.view(*left.shape[:3], right.shape[3])


def _capped(scores: Tensor, softcap: float | None) -> Tensor:
    scores = scores.float()
    return scores if softcap is None else torch.tanh(scores / softcap) * softcap

"""Attention over one row of prompts and completions: a prompt on itself, a completion on [its prompt, its own tokens].

Registered with transformers' attention interface as `NAME`, so that a model's own layers use it inside `sharing`; it
knows grouped queries, scaling and sliding windows. What it is given beside that and cannot honour (sinks, position
biases, soft caps) it writes down in `Sharing.refused`: the numbers are wrong then, and whoever asked looks there.

Three ways to compute it, one for a device:

    parts   CPU: PyTorch's flash kernel for completions on their prompt, all in one, and for completions on themselves,
            joined by their sums of exponentials; no key is copied
    flex    a GPU with Triton: flex attention with the tree as its mask
    sdpa    anything else: each completion on a copy of its prompt's keys and its own

The backward of `parts` hands each kernel the joined output and the joined sum: for P = exp(scores - log sum) and
D = rowsum(dO · O) are of all columns, and with these every block of columns has its own gradient (FlashAttention-2,
Dao 2023, arXiv 2307.08691, algorithm 2).

Shapes: T tokens of the row, H heads, K key-value heads, D of one head, G completions of a prompt, C tokens of the
longest, P of the prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface

from grpo_core.model.attention import attention_named
from grpo_core.trainer.layout import Layout, Prefix

__all__ = ["NAME", "Sharing", "recomputing", "sharing", "way_on"]

NAME = "grpo_core_shared_prefix"
_UNKNOWN = {"softcap": "soft caps", "s_aux": "sinks", "position_bias": "position biases"}


@dataclass
class Sharing:
    """A forward pass with shared prompts, while it goes on."""

    text_config: Any
    """Of the layers."""
    layout: Layout
    """Of the row."""
    layers: set[int] = field(default_factory=set)
    """Those that have attended."""
    refused: str | None = None
    """What a layer asked for that is not known here."""
    has_windows: bool = False
    """Whether a layer named a window."""
    kept: dict[Any, Any] = field(default_factory=dict)
    """Masks and indices that all layers use, by what they are."""


_now: ContextVar[Sharing | None] = ContextVar("grpo_core_sharing", default=None)


@contextmanager
def sharing(state: Sharing) -> Iterator[Sharing]:
    """Layers of the model attend as the state's layout says inside."""
    token = _now.set(state)
    try:
        with attention_named(state.text_config, NAME):
            yield state
    finally:
        _now.reset(token)


def recomputing() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """What `torch.utils.checkpoint` asks for around a layer's forward and its recomputation: the latter runs in the
    backward pass, behind the end of `sharing`."""
    state = _now.get()
    return nullcontext(), nullcontext() if state is None else sharing(state)


def way_on(device: torch.device) -> Literal["parts", "flex", "sdpa"]:
    """How it is computed there."""
    if device.type == "cpu":
        return "parts"
    return "flex" if device.type == "cuda" and _has_triton() else "sdpa"


def shared_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """[1, H, T, D] -> [1, T, H, D]."""
    state = _now.get()
    assert state is not None, "only used inside `sharing`"
    state.layers.add(module.layer_idx)
    for name, what in _UNKNOWN.items():
        if kwargs.get(name) is not None:
            state.refused = what
    state.has_windows |= sliding_window is not None
    window = None if sliding_window is None or sliding_window >= state.layout.longest else sliding_window
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    way = way_on(query.device)
    if way == "parts" and (window is not None or value.shape[-1] != query.shape[-1]):
        way = "sdpa"
    if way == "parts":
        answer: Tensor = _ByParts.apply(query, key, value, state, scale)  # type: ignore[no-untyped-call]
    else:
        answer = (_flex if way == "flex" else _sdpa)(query, key, value, state, scale, window)
    return answer.transpose(1, 2).contiguous(), None


AttentionInterface.register(NAME, shared_attention)


class _ByParts(torch.autograd.Function):
    """Keeps queries, keys, values, answers and sums of exponentials for the backward pass, each once."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, state: Sharing, scale: float) -> Tensor:
        answer_1HTD, sums_1HT = torch.empty_like(query), query.new_empty(query.shape[:3], dtype=_sum_dtype(query))
        for prefix in state.layout.prefixes:
            prompt, own = slice(prefix.start, prefix.own), slice(prefix.own, prefix.end)
            keys, values = key[:, :, prompt], value[:, :, prompt]
            answer_1HTD[:, :, prompt], sums_1HT[:, :, prompt] = _flash(
                query[:, :, prompt], keys, values, scale=scale, is_causal=True
            )
            if prefix.own == prefix.end:
                continue
            far, far_sums = _flash(query[:, :, own], keys, values, scale=scale, is_causal=False)
            seats = _seats(state, prefix, query.device)
            near, near_sums = _flash(
                seats.padded(query[:, :, own]),
                seats.padded(key[:, :, own]),
                seats.padded(value[:, :, own]),
                scale=scale,
                is_causal=True,
            )
            near, near_sums = seats.back(near), seats.back(near_sums)
            sums = torch.logaddexp(far_sums, near_sums)
            far_share, near_share = ((each - sums).exp()[..., None] for each in (far_sums, near_sums))
            answer_1HTD[:, :, own] = far * far_share + near * near_share
            sums_1HT[:, :, own] = sums
        ctx.save_for_backward(query, key, value, answer_1HTD, sums_1HT)
        ctx.state, ctx.scale = state, scale
        return answer_1HTD

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, answer, sums = ctx.saved_tensors
        grads = tuple(torch.empty_like(each) for each in (query, key, value))
        for prefix in ctx.state.layout.prefixes:
            prompt, own = slice(prefix.start, prefix.own), slice(prefix.own, prefix.end)
            keys, values = key[:, :, prompt], value[:, :, prompt]

            def of(places: slice) -> tuple[Tensor, Tensor, Tensor, Tensor]:
                return tuple(each[:, :, places] for each in (grad, query, answer, sums))  # type: ignore[return-value]

            found = _flash_backward(*of(prompt), keys, values, scale=ctx.scale, is_causal=True)
            for whole, part in zip(grads, found, strict=True):
                whole[:, :, prompt] = part
            if prefix.own == prefix.end:
                continue
            far_query, far_key, far_value = _flash_backward(*of(own), keys, values, scale=ctx.scale, is_causal=False)
            seats = _seats(ctx.state, prefix, query.device)
            found = _flash_backward(
                seats.padded_gradient(grad[:, :, own]),
                seats.padded(query[:, :, own]),
                seats.padded(answer[:, :, own]),
                seats.padded(sums[:, :, own]),
                seats.padded(key[:, :, own]),
                seats.padded(value[:, :, own]),
                scale=ctx.scale,
                is_causal=True,
            )
            near = [seats.back(each) for each in found]
            grads[0][:, :, own] = near[0].add_(far_query)
            grads[1][:, :, own], grads[2][:, :, own] = near[1], near[2]
            grads[1][:, :, prompt] += far_key
            grads[2][:, :, prompt] += far_value
        return (*grads, None, None)


@dataclass(frozen=True)
class _Seats:
    """A prompt's completions side by side, padded behind their ends to one length.

    What stands at padding is the first token once more: later than all that counts, so that no token sees it."""

    index_GC: Tensor
    """Places among the completions' tokens."""
    taken_n: Tensor
    """Those of [G*C] that are no padding, in order."""
    padding_GC: Tensor
    """bool"""

    def padded(self, values: Tensor) -> Tensor:
        """[1, H, n, …] -> [G, H, C, …]"""
        G, C = self.index_GC.shape
        picked = values[0].index_select(1, self.index_GC.flatten())
        return picked.reshape(len(picked), G, C, *picked.shape[2:]).transpose(0, 1)

    def padded_gradient(self, values: Tensor) -> Tensor:
        """The same with 0 at padding, which must not add to what it saw."""
        return self.padded(values).masked_fill_(self.padding_GC[:, None, :, None], 0.0)

    def back(self, values: Tensor) -> Tensor:
        """[G, H, C, …] -> [1, H, n, …]"""
        return values.transpose(0, 1).flatten(1, 2).index_select(1, self.taken_n)[None]


def _seats(state: Sharing, prefix: Prefix, device: torch.device) -> _Seats:
    if prefix not in state.kept:
        lengths = torch.tensor([tokens for tokens in prefix.own_tokens if tokens])
        columns_C = torch.arange(int(lengths.max()))
        starts_G = lengths.cumsum(0) - lengths
        is_taken_GC = columns_C < lengths[:, None]
        index_GC = torch.where(is_taken_GC, starts_G[:, None] + columns_C, starts_G[:, None])
        taken_n = is_taken_GC.flatten().nonzero()[:, 0]
        state.kept[prefix] = _Seats(index_GC.to(device), taken_n.to(device), ~is_taken_GC.to(device))
    seats: _Seats = state.kept[prefix]
    return seats


def _flash(query: Tensor, key: Tensor, value: Tensor, *, scale: float, is_causal: bool) -> tuple[Tensor, Tensor]:
    """Answers [B, H, Q, D], and the logarithm of each one's sum of exponentials [B, H, Q]."""
    found: tuple[Tensor, Tensor] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, 0.0, is_causal, scale=scale
    )
    return found


def _flash_backward(
    grad: Tensor,
    query: Tensor,
    answer: Tensor,
    sums: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    scale: float,
    is_causal: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Of query, key and value, where answer and sums are of all columns, these keys among them."""
    found: tuple[Tensor, Tensor, Tensor] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        grad, query, key, value, answer, sums, 0.0, is_causal, scale=scale
    )
    return found


def _sum_dtype(query: Tensor) -> torch.dtype:
    return torch.float64 if query.dtype == torch.float64 else torch.float32


def _sdpa(query: Tensor, key: Tensor, value: Tensor, state: Sharing, scale: float, window: int | None) -> Tensor:
    """Completions of one prompt together, padded, each with the prompt's keys before its own."""
    answers = []
    grouped = query.shape[1] != key.shape[1]

    def attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, scale=scale, enable_gqa=grouped
        )

    for prefix in state.layout.prefixes:
        prompt, own = slice(prefix.start, prefix.own), slice(prefix.own, prefix.end)
        P = prefix.prompt_tokens
        mask = _band(state, P, 0, window, query.device)
        answers.append(attend(query[:, :, prompt], key[:, :, prompt], value[:, :, prompt], mask))
        if prefix.own == prefix.end:
            continue
        seats = _seats(state, prefix, query.device)
        G, C = seats.index_GC.shape
        keys, values = (
            torch.cat([each[:, :, prompt].expand(G, -1, -1, -1), seats.padded(each[:, :, own])], dim=2)
            for each in (key, value)
        )
        found = attend(seats.padded(query[:, :, own]), keys, values, _band(state, C, P, window, query.device))
        answers.append(seats.back(found))
    return torch.cat(answers, dim=2)


def _band(state: Sharing, queries: int, before: int, window: int | None, device: torch.device) -> Tensor:
    """bool [queries, before + queries] What each of the last tokens of a sequence sees."""
    at = ("band", queries, before, window)
    if at not in state.kept:
        distance = torch.arange(before, before + queries)[:, None] - torch.arange(before + queries)
        seen = distance >= 0 if window is None else (distance >= 0) & (distance < window)
        state.kept[at] = seen.to(device)
    mask: Tensor = state.kept[at]
    return mask


def _flex(query: Tensor, key: Tensor, value: Tensor, state: Sharing, scale: float, window: int | None) -> Tensor:
    from torch.nn.attention.flex_attention import create_block_mask

    at = ("flex", window)
    if at not in state.kept:
        T, device = query.shape[2], query.device
        state.kept[at] = create_block_mask(_tree(state.layout, window, device), None, None, T, T, device=str(device))
    found: Tensor = _compiled_flex(query.device.type)(
        query, key, value, block_mask=state.kept[at], scale=scale, enable_gqa=query.shape[1] != key.shape[1]
    )
    return found


def _tree(layout: Layout, window: int | None, device: torch.device) -> Callable[..., Tensor]:
    """Which token sees which: within a prompt's own, earlier ones of its prompt or of the same completion."""
    prefixes, sequences, offsets = (
        each.to(device) for each in (layout.prefix_numbers, layout.sequences, layout.offsets)
    )

    def sees(batch: Tensor, head: Tensor, one: Tensor, other: Tensor) -> Tensor:
        related = (sequences[other] < 0) | (sequences[other] == sequences[one])
        seen = (prefixes[one] == prefixes[other]) & related & (other <= one)
        return seen if window is None else seen & (offsets[one] - offsets[other] < window)

    return sees


@cache
def _compiled_flex(device_type: str) -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import flex_attention

    attend: Any = flex_attention
    chosen: Callable[..., Any] = torch.compile(attend) if device_type == "cuda" else attend
    return chosen


@cache
def _has_triton() -> bool:
    from torch.utils._triton import has_triton

    return bool(has_triton())

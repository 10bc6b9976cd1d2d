"""Log-probabilities and entropies of tokens from hidden states, in chunks: full-vocabulary logits are never whole.

What it does not do: run the model, or know how a model makes logits of hidden states; `head` does (`lm_head`, with the
scaling or soft-capping of its family). Called inside the wrapped module's forward, by every trainer backend.

Memory: at most one chunk of [chunk_tokens, V] logits is alive, in forward and backward, and in the backward its
gradient beside it. Everything else is computed a few rows at a time, small enough for a processor's cache. The backward
of several chunks computes each chunk's logits again; a single chunk keeps them.

Shapes: N tokens, C tokens of a chunk, H hidden, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

__all__ = ["TokenLogprobs", "chunked_logprobs"]

Head = Callable[[Tensor], Tensor]

_BLOCK_LOGITS = {"cpu": 2**20}
"""Logits of a block of rows, by the kind of device: 4 MiB in fp32. On a GPU fewer and larger ones are faster."""
_BLOCK_LOGITS_ELSEWHERE = 2**24


class TokenLogprobs(NamedTuple):
    """Numbers of N tokens, in fp32 (fp64 where the head computes in it)."""

    logprobs_N: Tensor
    """Of softmax(logits / temperature), with gradient."""
    entropies_N: Tensor
    """Of the same distribution, in nats; with gradient only when asked."""
    raw_logprobs_N: Tensor | None
    """Of softmax(logits), without gradient; None unless asked."""


def chunked_logprobs(
    hidden_NH: Tensor,
    targets_N: Tensor,
    head: Head,
    *,
    temperature: float,
    chunk_tokens: int,
    with_entropy_grad: bool = False,
    raw: bool = False,
) -> TokenLogprobs:
    """Log-probability of `targets_N[i]` after `hidden_NH[i]`, for every i.

    `head` maps [C, H] to finite logits [C, V]. Gradients reach `hidden_NH` and whatever of the head needs them.
    """
    recompute = torch.is_grad_enabled() and len(targets_N) > chunk_tokens

    def chunk(hidden_CH: Tensor, targets_C: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        logits_CV = head(hidden_CH)
        logprobs_C, entropies_C = _TokenStatistics.apply(  # type: ignore[no-untyped-call]
            logits_CV, targets_C, temperature, with_entropy_grad
        )
        return logprobs_C, entropies_C, _raw_logprobs(logits_CV, targets_C) if raw and temperature != 1.0 else None

    parts = [
        # The head draws nothing at random, so the random state need not be kept.
        checkpoint(chunk, hidden_CH, targets_C, use_reentrant=False, preserve_rng_state=False)
        if recompute
        else chunk(hidden_CH, targets_C)
        for hidden_CH, targets_C in zip(
            torch.split(hidden_NH, chunk_tokens), torch.split(targets_N, chunk_tokens), strict=True
        )
    ]
    logprobs_N, entropies_N = torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])
    if not raw:
        return TokenLogprobs(logprobs_N, entropies_N, None)
    if temperature == 1.0:
        return TokenLogprobs(logprobs_N, entropies_N, logprobs_N.detach())
    return TokenLogprobs(logprobs_N, entropies_N, torch.cat([part[2] for part in parts if part[2] is not None]))


class _TokenStatistics(torch.autograd.Function):
    """log p(target) and entropy of p = softmax(logits / temperature), in place where autograd would make copies.

    With y = (logits - largest) / temperature and S = sum exp y: log p = y - log S and H = log S - sum(y exp y) / S. The
    largest logit is subtracted before anything is rounded: 300 + 1e-5 is 300 in fp32.
    d log p(target) / dy = onehot(target) - p, and dH / dy = -p (log p + H).
    """

    @staticmethod
    def forward(
        ctx: Any, logits_CV: Tensor, targets_C: Tensor, temperature: float, with_entropy_grad: bool
    ) -> tuple[Tensor, Tensor]:
        numbers = [_statistics(logits, targets, temperature) for logits, targets in _blocks(logits_CV, targets_C)]
        logprobs_C, entropies_C, largest_C1, log_sum_C = (torch.cat(each) for each in zip(*numbers, strict=True))
        ctx.save_for_backward(logits_CV, targets_C, largest_C1, log_sum_C, entropies_C)
        ctx.temperature, ctx.with_entropy_grad = temperature, with_entropy_grad
        if not with_entropy_grad:
            ctx.mark_non_differentiable(entropies_C)
        return logprobs_C, entropies_C

    @staticmethod
    def backward(ctx: Any, grad_logprobs_C: Tensor, grad_entropies_C: Tensor) -> tuple[Tensor, None, None, None]:
        logits_CV, targets_C, largest_C1, log_sum_C, entropies_C = ctx.saved_tensors
        grad_CV = torch.empty_like(logits_CV)
        every = (logits_CV, targets_C, largest_C1, log_sum_C, entropies_C, grad_logprobs_C, grad_entropies_C, grad_CV)
        for logits, targets, largest, log_sum, entropies, grad_logprobs, grad_entropies, out in _blocks(*every):
            precise = _precise(logits)
            place = out if out.dtype == precise.dtype else None
            logp = _exponents(precise, largest, ctx.temperature, out=place).sub_(log_sum[:, None])
            if ctx.with_entropy_grad:
                p = logp.exp()
                grad = logp.add_(entropies[:, None]).mul_(-grad_entropies[:, None])
                grad.sub_(grad_logprobs[:, None]).mul_(p)
            else:
                grad = logp.exp_().mul_(-grad_logprobs[:, None])
            grad.scatter_add_(-1, targets[:, None], grad_logprobs[:, None])
            if ctx.temperature != 1.0:
                grad.div_(ctx.temperature)
            if place is None:
                out.copy_(grad)
        return grad_CV, None, None, None


def _statistics(logits_RV: Tensor, targets_R: Tensor, temperature: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """log p(target) [R], entropy [R], largest logit [R, 1] and log S [R] of a block of R rows."""
    precise_RV = _precise(logits_RV)
    largest_R1 = precise_RV.amax(-1, keepdim=True)
    y_RV = _exponents(precise_RV, largest_R1, temperature)
    chosen_R = y_RV.gather(-1, targets_R[:, None]).squeeze(-1)
    exp_RV = y_RV.exp()
    sum_R = exp_RV.sum(-1)
    log_sum_R = sum_R.log()
    return chosen_R - log_sum_R, log_sum_R - exp_RV.mul_(y_RV).sum(-1) / sum_R, largest_R1, log_sum_R


def _blocks(first_CV: Tensor, *more: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Views of the same few rows of each, one after the other."""
    logits = _BLOCK_LOGITS.get(first_CV.device.type, _BLOCK_LOGITS_ELSEWHERE)
    rows = max(1, logits // first_CV.shape[-1])
    return zip(*(torch.split(each, rows) for each in (first_CV, *more)), strict=True)


def _precise(logits: Tensor) -> Tensor:
    return logits if logits.dtype == torch.float64 else logits.float()


def _exponents(precise: Tensor, largest: Tensor, temperature: float, out: Tensor | None = None) -> Tensor:
    """y = (logits - largest) / temperature, a new tensor, or in `out`."""
    shifted = torch.sub(precise, largest, out=out)
    return shifted if temperature == 1.0 else shifted.div_(temperature)


@torch.no_grad()
def _raw_logprobs(logits_CV: Tensor, targets_C: Tensor) -> Tensor:
    def raw(logits_RV: Tensor, targets_R: Tensor) -> Tensor:
        y_RV = _exponents(_precise(logits_RV), _precise(logits_RV).amax(-1, keepdim=True), 1.0)
        chosen_R = y_RV.gather(-1, targets_R[:, None]).squeeze(-1)
        return chosen_R - y_RV.exp_().sum(-1).log()

    return torch.cat([raw(logits, targets) for logits, targets in _blocks(logits_CV, targets_C)])

"""Log-probabilities and entropies of tokens from hidden states, in chunks: full-vocabulary logits are never whole.

What it does not do: run the model, or know how a model makes logits of hidden states; `head` does (`lm_head`, with the
scaling or soft-capping of its family). Called inside the wrapped module's forward, by every trainer backend.

Memory: at most one chunk of [chunk_tokens, V] logits is alive, in forward and backward, beside two temporaries of its
size (without gradient one, and a sixteenth). The backward of several chunks computes each chunk's logits again; a
single chunk keeps them.

Shapes: N tokens, C tokens of a chunk, H hidden, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

__all__ = ["TokenLogprobs", "chunked_logprobs"]

Head = Callable[[Tensor], Tensor]

_PARTS = 16
"""Into so many blocks of rows a chunk is cut where a temporary of all of it would be one too many."""


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
        precise_CV = _precise(logits_CV)
        largest_C1 = precise_CV.amax(-1, keepdim=True)
        exp_CV = _exponents(precise_CV, largest_C1, temperature).exp_()
        sum_C = exp_CV.sum(-1)
        log_sum_C = sum_C.log()
        chosen_C1 = _exponents(precise_CV.gather(-1, targets_C[:, None]), largest_C1, temperature)
        logprobs_C = chosen_C1.squeeze(-1) - log_sum_C
        entropies_C = log_sum_C - _weighted(exp_CV, precise_CV, largest_C1, temperature) / sum_C
        ctx.save_for_backward(logits_CV, targets_C, largest_C1, log_sum_C, entropies_C)
        ctx.temperature, ctx.with_entropy_grad = temperature, with_entropy_grad
        if not with_entropy_grad:
            ctx.mark_non_differentiable(entropies_C)
        return logprobs_C, entropies_C

    @staticmethod
    def backward(ctx: Any, grad_logprobs_C: Tensor, grad_entropies_C: Tensor) -> tuple[Tensor, None, None, None]:
        logits_CV, targets_C, largest_C1, log_sum_C, entropies_C = ctx.saved_tensors
        logp_CV = _exponents(_precise(logits_CV), largest_C1, ctx.temperature).sub_(log_sum_C[:, None])
        if ctx.with_entropy_grad:
            p_CV = logp_CV.exp()
            grad_CV = logp_CV.add_(entropies_C[:, None]).mul_(-grad_entropies_C[:, None])
            grad_CV.sub_(grad_logprobs_C[:, None]).mul_(p_CV)
        else:
            grad_CV = logp_CV.exp_().mul_(-grad_logprobs_C[:, None])
        grad_CV.scatter_add_(-1, targets_C[:, None], grad_logprobs_C[:, None])
        return grad_CV.div_(ctx.temperature).to(logits_CV.dtype), None, None, None


def _precise(logits: Tensor) -> Tensor:
    return logits if logits.dtype == torch.float64 else logits.float()


def _exponents(precise: Tensor, largest_C1: Tensor, temperature: float) -> Tensor:
    """y = (logits - largest) / temperature, a new tensor."""
    shifted = precise - largest_C1
    return shifted if temperature == 1.0 else shifted.div_(temperature)


def _weighted(exp_CV: Tensor, precise_CV: Tensor, largest_C1: Tensor, temperature: float) -> Tensor:
    """[C] sum(y exp y); overwrites `exp_CV`. A few rows at a time, as y would be one more chunk."""
    rows = max(1, -(-len(exp_CV) // _PARTS))
    blocks = zip(*(torch.split(each, rows) for each in (exp_CV, precise_CV, largest_C1)), strict=True)
    return torch.cat([exp.mul_(_exponents(precise, largest, temperature)).sum(-1) for exp, precise, largest in blocks])


@torch.no_grad()
def _raw_logprobs(logits_CV: Tensor, targets_C: Tensor) -> Tensor:
    precise_CV = _precise(logits_CV)
    largest_C1 = precise_CV.amax(-1, keepdim=True)
    log_sum_C = _exponents(precise_CV, largest_C1, 1.0).exp_().sum(-1).log()
    return (precise_CV.gather(-1, targets_C[:, None]) - largest_C1).squeeze(-1) - log_sum_C

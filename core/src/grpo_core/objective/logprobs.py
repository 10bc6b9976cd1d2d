"""Log-probabilities and entropies of tokens from hidden states, in chunks: full-vocabulary logits are never whole.

What it does not do: run the model, or know how a model makes logits of hidden states; `head` does (`lm_head`, with the
scaling or soft-capping of its family). Called inside the wrapped module's forward, by every trainer backend.

Memory: at most one chunk of [chunk_tokens, V] logits is alive, in forward and backward, beside two temporaries of its
size. The backward of several chunks computes each chunk's logits again; a single chunk keeps them.

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

    With z = logits / temperature: d log p(target) / dz = onehot(target) - p, and dH / dz = -p (log p + H).
    """

    @staticmethod
    def forward(
        ctx: Any, logits_CV: Tensor, targets_C: Tensor, temperature: float, with_entropy_grad: bool
    ) -> tuple[Tensor, Tensor]:
        z_CV = _scaled(logits_CV, temperature)
        largest_C1 = z_CV.amax(-1, keepdim=True)
        exp_CV = (z_CV - largest_C1).exp_()
        sum_C = exp_CV.sum(-1)
        lse_C = largest_C1.squeeze(-1) + sum_C.log()
        logprobs_C = z_CV.gather(-1, targets_C[:, None]).squeeze(-1) - lse_C
        entropies_C = lse_C - exp_CV.mul_(z_CV).sum(-1) / sum_C
        ctx.save_for_backward(logits_CV, targets_C, lse_C, entropies_C)
        ctx.temperature, ctx.with_entropy_grad = temperature, with_entropy_grad
        if not with_entropy_grad:
            ctx.mark_non_differentiable(entropies_C)
        return logprobs_C, entropies_C

    @staticmethod
    def backward(ctx: Any, grad_logprobs_C: Tensor, grad_entropies_C: Tensor) -> tuple[Tensor, None, None, None]:
        logits_CV, targets_C, lse_C, entropies_C = ctx.saved_tensors
        logp_CV = _scaled(logits_CV, ctx.temperature) - lse_C[:, None]
        if ctx.with_entropy_grad:
            p_CV = logp_CV.exp()
            grad_CV = logp_CV.add_(entropies_C[:, None]).mul_(-grad_entropies_C[:, None])
            grad_CV.sub_(grad_logprobs_C[:, None]).mul_(p_CV)
        else:
            grad_CV = logp_CV.exp_().mul_(-grad_logprobs_C[:, None])
        grad_CV.scatter_add_(-1, targets_C[:, None], grad_logprobs_C[:, None])
        return grad_CV.div_(ctx.temperature).to(logits_CV.dtype), None, None, None


def _scaled(logits_CV: Tensor, temperature: float) -> Tensor:
    precise_CV = logits_CV if logits_CV.dtype == torch.float64 else logits_CV.float()
    return precise_CV if temperature == 1.0 else precise_CV / temperature


@torch.no_grad()
def _raw_logprobs(logits_CV: Tensor, targets_C: Tensor) -> Tensor:
    precise_CV = _scaled(logits_CV, 1.0)
    return precise_CV.gather(-1, targets_C[:, None]).squeeze(-1) - precise_CV.logsumexp(-1)

"""What an update says about itself, gathered over micro-batches (and ranks) as sums and largest values.

Means of means would weigh short micro-batches too much; sums divided once, at the end, do not. Everything stays on the
device until `finalise`, which waits for it once.

Shapes: B completions, T tokens, K sums, M largest values.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["MetricSums", "TokenMetrics", "measure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMetrics:
    """What is measured of each token of a micro-batch; only tokens in the mask count."""

    mask_BT: Tensor
    """bool: tokens in the loss."""
    ratio_BT: Tensor
    """Policy / old policy, at the level of the loss."""
    cut_low_BT: Tensor
    """bool: the clip removes the gradient, of a ratio that is too low."""
    cut_high_BT: Tensor
    """bool: the same of a ratio that is too high."""
    bounded_ratio_BT: Tensor | None
    """bool: the loss bounds the ratio, as a weight; None: it is of a kind that does not."""
    entropies_BT: Tensor
    """In nats."""
    kl_BT: Tensor | None
    """k3 against the reference model; None: there is none."""
    gaps_BT: Tensor
    """Trainer - sampler, in nats."""
    raw_weights_BT: Tensor
    """Importance ratio before it is bounded."""
    bounded_BT: Tensor
    """bool: the bound changed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSums:
    """Sums and largest values; over ranks, all-reduce the first with SUM and the second with MAX."""

    sums_K: Tensor
    """fp64, in the order of `SUMS`."""
    largest_M: Tensor
    """fp64, in the order of `LARGEST`; -inf where nothing was seen."""

    @classmethod
    def none(cls, device: torch.device | str = "cpu") -> MetricSums:
        """Where adding up starts."""
        return cls(
            sums_K=torch.zeros(len(SUMS), dtype=torch.float64, device=device),
            largest_M=torch.full((len(LARGEST),), -torch.inf, dtype=torch.float64, device=device),
        )

    def __add__(self, other: MetricSums) -> MetricSums:
        return MetricSums(sums_K=self.sums_K + other.sums_K, largest_M=torch.maximum(self.largest_M, other.largest_M))

    def finalise(self) -> dict[str, float]:
        """The metrics of an update by their documented names (docs/objective.md), those that apply.

        Without a token in the loss only `policy/loss` does, without a reference model `policy/kl` does not, and
        `policy/bounded_share` does for losses that weigh by a bounded ratio.
        """
        total = dict(zip(SUMS, self.sums_K.tolist(), strict=True))
        largest = dict(zip(LARGEST, self.largest_M.tolist(), strict=True))
        metrics = {"policy/loss": total["loss"]}
        if tokens := total["tokens"]:
            metrics |= {name: total[source] / tokens for name, source in MEANS.items()}
            metrics |= {
                "policy/ratio_max": largest["ratio"],
                "sampler/gap_max": largest["gap"],
                "sampler/ratio_min": -largest["minus_raw_weight"],
                "sampler/ratio_max": largest["raw_weight"],
                "sampler/ess": total["raw_weight"] ** 2 / (tokens * total["raw_weight_squared"]),
            }
        if total["kl_tokens"]:
            metrics["policy/kl"] = total["kl"] / total["kl_tokens"]
        if total["weighed_tokens"]:
            metrics["policy/bounded_share"] = total["bounded_ratio"] / total["weighed_tokens"]
        return metrics


SUMS = (
    "loss",
    "tokens",
    "ratio",
    "cut_low",
    "cut_high",
    "entropy",
    "kl_tokens",
    "kl",
    "weighed_tokens",
    "bounded_ratio",
    "gap",
    "sampler_kl",
    "raw_weight",
    "raw_weight_squared",
    "bounded",
)
LARGEST = ("ratio", "gap", "raw_weight", "minus_raw_weight")
MEANS = {
    "policy/ratio_mean": "ratio",
    "policy/clip_low_share": "cut_low",
    "policy/clip_high_share": "cut_high",
    "policy/entropy": "entropy",
    "sampler/gap_mean": "gap",
    "sampler/kl": "sampler_kl",
    "sampler/ratio_mean": "raw_weight",
    "sampler/dropped_share": "bounded",
}
"""Metric -> the sum that, divided by the tokens, is it."""


@torch.no_grad()
def measure(loss: Tensor, tokens: TokenMetrics) -> MetricSums:
    """The sums of one micro-batch."""
    mask_BT, gaps_BT = tokens.mask_BT, tokens.gaps_BT
    ones_BT, zeros_BT = torch.ones_like(gaps_BT), torch.zeros_like(gaps_BT)
    added = {
        "tokens": ones_BT,
        "ratio": tokens.ratio_BT,
        "cut_low": tokens.cut_low_BT,
        "cut_high": tokens.cut_high_BT,
        "entropy": tokens.entropies_BT,
        "kl_tokens": zeros_BT if tokens.kl_BT is None else ones_BT,
        "kl": zeros_BT if tokens.kl_BT is None else tokens.kl_BT,
        "weighed_tokens": zeros_BT if tokens.bounded_ratio_BT is None else ones_BT,
        "bounded_ratio": zeros_BT if tokens.bounded_ratio_BT is None else tokens.bounded_ratio_BT,
        "gap": gaps_BT.abs(),
        # k3 of KL(sampler || trainer): the sampler drew, so its ratio trainer / sampler is exp(gap).
        "sampler_kl": gaps_BT.clamp(max=20.0).expm1() - gaps_BT,
        "raw_weight": tokens.raw_weights_BT,
        "raw_weight_squared": tokens.raw_weights_BT.square(),
        "bounded": tokens.bounded_BT,
    }
    seen = {
        "ratio": tokens.ratio_BT,
        "gap": gaps_BT.abs(),
        "raw_weight": tokens.raw_weights_BT,
        "minus_raw_weight": -tokens.raw_weights_BT,
    }
    sums = {name: torch.where(mask_BT, values_BT, 0).sum(dtype=torch.float64) for name, values_BT in added.items()}
    sums["loss"] = loss.detach().double()
    largest = [torch.where(mask_BT, seen[name], -torch.inf).amax().double() for name in LARGEST]
    return MetricSums(sums_K=torch.stack([sums[name] for name in SUMS]), largest_M=torch.stack(largest))

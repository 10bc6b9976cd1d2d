"""The routers of a mixture of experts, and the loss that keeps their load even where the model's config asks for it.

    loss = coefficient * E * sum_e f_e P_e

With E experts, f_e the share of tokens that go to expert e (K in all, as each goes to K experts) and P_e the mean
probability that the routers give it: Switch Transformers (Fedus et al. 2021, arXiv 2101.03961), equations 4 to 6. As in
transformers' `load_balancing_loss_func`, for which published coefficients are made, f and P are over all layers
together. Both are of the whole optimiser update, over every micro-batch and rank: f_e P_e is no sum over tokens, so f
is counted before any gradient is computed, and with f given the rest is one.

Shapes: L layers, T tokens, E experts, K experts a token.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = ["RouterLoss", "RouterSums", "router_arguments", "router_loss_of", "router_warning"]

FLAG = "output_router_logits"
COEFFICIENTS = ("router_aux_loss_coef", "aux_loss_coef")


class RouterSums(NamedTuple):
    """What routers did with some tokens, over all layers; sums over micro-batches and ranks are those of all tokens."""

    probabilities_E: Tensor
    """Sum of each expert's probability, in fp32 (fp64 where the model computes in it), with gradient."""
    chosen_E: Tensor
    """How often each expert was chosen, in fp64: fp32 counts to 2**24."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterLoss:
    """How a model's load balancing loss is made."""

    coefficient: float
    """What the loss is multiplied by; above 0."""
    experts: int
    """E."""
    chosen: int
    """K."""

    def sums(self, router_logits: Sequence[Tensor], counted_T: Tensor) -> RouterSums:
        """Those of the tokens that count (bool), from each layer's logits [..., E] with T tokens in all."""
        kinds: list[RouterSums] = []
        for logits in router_logits:
            logits_TE = logits.flatten(0, -2)
            probabilities_TE = logits_TE.softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
            counted_T1 = counted_T[:, None].to(probabilities_TE.dtype)
            chosen_TK = probabilities_TE.topk(self.chosen, dim=-1).indices
            ones_TK = counted_T1.expand_as(chosen_TK).contiguous()
            chosen_E = probabilities_TE.new_zeros(self.experts).scatter_add_(0, chosen_TK.flatten(), ones_TK.flatten())
            kinds.append(RouterSums((probabilities_TE * counted_T1).sum(0), chosen_E))
        probabilities, chosen = zip(*kinds, strict=True)
        return RouterSums(torch.stack(probabilities).sum(0), torch.stack(chosen).sum(0, dtype=torch.float64))

    def loss(self, probabilities_E: Tensor, chosen_E: Tensor) -> Tensor:
        """Without its coefficient: K where the load is even. The probabilities of a part of the tokens, with the
        choices of all of them, give this part's share of the loss."""
        tokens = (chosen_E.sum() / self.chosen).clamp(min=1.0)  # once a layer
        shares_E = (chosen_E / tokens).to(probabilities_E.dtype)
        return self.experts * (shares_E * probabilities_E).sum() / tokens.to(probabilities_E.dtype)


def router_loss_of(model: Any) -> RouterLoss | None:
    """The loss that the model's config asks for by `output_router_logits` and a coefficient above 0; None: no such."""
    coefficient = _coefficient(model)
    experts, chosen = getattr(model, "num_experts", None), getattr(model, "num_experts_per_tok", None)
    if not _is_asked(model) or not coefficient > 0 or not _is_switch_loss(model) or experts is None or chosen is None:
        return None
    return RouterLoss(coefficient=float(coefficient), experts=experts, chosen=chosen)


def router_warning(model: Any) -> str | None:
    """What to tell a person whose config asks for a loss that is not computed; None where nothing is amiss."""
    if (
        not _is_asked(model)
        or router_loss_of(model) is not None
        or (_is_switch_loss(model) and not _coefficient(model))
    ):
        return None
    return (
        f"the config asks for router logits (output_router_logits), and {type(model).__name__} has no load balancing "
        "loss that is known here: its routers are trained by the policy's loss alone"
    )


def router_arguments(model: Any, *, asked: bool) -> dict[str, bool]:
    """Arguments of a forward that gives each router's logits; or, where they are not `asked` for, computes no loss of
    routers, whatever the config says."""
    return {FLAG: asked} if asked or (_is_asked(model) and _takes_flag(model)) else {}


def _coefficient(model: Any) -> float:
    """That of the loss; vision-language models have it in the config of their text layers."""
    places = (model, model.config.get_text_config())
    found = (getattr(place, name, None) for place in places for name in COEFFICIENTS)
    return float(next((value for value in found if value is not None), 0.0))


def _is_asked(model: Any) -> bool:
    return any(getattr(config, FLAG, False) for config in (model.config, model.config.get_text_config()))


def _is_switch_loss(model: Any) -> bool:
    """Whether transformers' own forward would compute the loss above: the families share one function, by copies."""
    function = getattr(sys.modules[type(model).__module__], "load_balancing_loss_func", None)
    named = None if function is None else list(inspect.signature(function).parameters)
    return named == ["gate_logits", "num_experts", "top_k", "attention_mask"]


def _takes_flag(model: Any) -> bool:
    parameters = inspect.signature(model.forward).parameters.values()
    return any(each.name == FLAG or each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)

"""The policy as every trainer begins with it: loaded, with its adapter, as one module. Where its weights then live, and
how they are spread over ranks, is the trainer's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, Protocol, TypeVar

import torch

from grpo_core.backends import BackendContext
from grpo_core.errors import TrainerError
from grpo_core.model.ends import name_ends
from grpo_core.model.freeze import freeze
from grpo_core.model.head import Head
from grpo_core.model.load import load_model
from grpo_core.model.lora import add_adapter, as_reference
from grpo_core.model.routers import router_warning
from grpo_core.model.tokenizer import load_tokenizer
from grpo_core.trainer.place import checkpoint_layers
from grpo_core.trainer.policy import PolicyModule
from grpo_core.trainer.spread import Spread

__all__ = ["PolicyOptions", "has_reference_model", "load_policy", "policy_or_reference"]

Module = TypeVar("Module")

_log = logging.getLogger(__name__)


class PolicyOptions(Protocol):
    """Of a trainer's options, those that the policy is made by."""

    @property
    def attention(self) -> str | None:
        """Implementation of attention, by transformers' name."""
        ...

    @property
    def chunk_tokens(self) -> int | None:
        """Tokens whose full-vocabulary logits exist at once."""
        ...


def load_policy(
    options: PolicyOptions,
    context: BackendContext,
    spread: Spread,
    *,
    dtype: torch.dtype,
    trained: bool,
    may_be_plain: bool = True,
    project: Callable[[Any], Head] | None = None,
) -> PolicyModule:
    """The context's model in eval mode, in main memory. What is `trained` gets the adapter, is frozen in part
    and recomputes activations, as the settings say; the rest is frozen. `may_be_plain` is `PolicyModule`'s, and so is
    what `project` makes of the model."""
    settings = context.trainer
    model: Any = load_model(context.model, dtype, attention=options.attention).requires_grad_(trained)
    if trained:
        name_ends(model, load_tokenizer(context.model), context.model)
    if trained and (warning := router_warning(model)) and context.rank == 0:
        _log.warning(warning)
    if trained and settings.lora is not None:
        add_adapter(model, settings.lora, seed=context.seed, with_reference=context.objective.beta > 0)
    if trained:
        freeze(model, settings)
    if trained and settings.gradient_checkpointing:
        checkpoint_layers(model)
    return PolicyModule(
        model,
        chunk_tokens=options.chunk_tokens,
        agreed=spread.agrees,
        may_be_plain=may_be_plain,
        project=project(model) if project else None,
    ).eval()


def has_reference_model(context: BackendContext) -> bool:
    """Whether the objective needs a model beside the policy; an adapter is switched off instead."""
    return context.objective.beta > 0 and context.trainer.lora is None


@contextmanager
def policy_or_reference(
    of: Literal["policy", "reference"], policy: Module, reference: Module | None, *, model: Any, beta: float
) -> Iterator[Module]:
    """What log-probabilities are asked of. A reference that is None is the policy around `model` with its adapter off;
    raises `TrainerError` where an objective without KL term, with `beta` 0, has no reference."""
    if of == "policy":
        yield policy
    elif beta == 0:
        raise TrainerError("no reference model is loaded", hint="it is loaded when objective.beta is above 0")
    elif reference is not None:
        yield reference
    else:
        with as_reference(model):
            yield policy

"""Models with adapters that have been changed at random, and adapters as peft itself writes them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers

from grpo_core.model.lora import add_adapter
from grpo_core.recipe.schema import LoraSettings
from tests.tiny_models import Family, make_model


def adapted_model(
    family: Family = "llama", *, seed: int = 0, with_reference: bool = False, config: Any = None, **lora: Any
) -> Any:
    """A tiny model with an adapter, every trained weight of which is random."""
    model = make_model(family, **(config or {}))
    add_adapter(model, LoraSettings(**lora), seed=seed, with_reference=with_reference)
    randomise(model)
    return model


@torch.no_grad()
def randomise(model: Any, seed: int = 1, scale: float = 0.1) -> None:
    """Add noise to every trained weight."""
    generator = torch.Generator().manual_seed(seed)
    for weight in model.parameters():
        if weight.requires_grad:
            weight += scale * torch.randn(weight.shape, generator=generator)


def peft_adapter(base: Path, folder: Path, **config: Any) -> Any:
    """Write an adapter as a user of peft does; gives the `PeftModel`, whose adapter is random."""
    import peft

    settings = {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM", **config}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of transformers about what peft's own wrapper asks it
        model = peft.get_peft_model(load_plain(base), peft.LoraConfig(**settings)).eval()
    randomise(model)
    model.save_pretrained(folder)
    return model


def load_plain(folder: Path) -> Any:
    """The model as anybody loads it."""
    return transformers.AutoModelForCausalLM.from_pretrained(folder)


def logits(model: Any) -> torch.Tensor:
    """[2, 20, V] Of fixed tokens."""
    ids_BT = torch.randint(0, 256, (2, 20), generator=torch.Generator().manual_seed(0))
    with torch.no_grad(), eval_mode(model):
        found: torch.Tensor = model(ids_BT).logits
        return found


@contextmanager
def eval_mode(model: Any) -> Iterator[None]:
    """For `logits`: whatever mode the model is in."""
    was_training = model.training
    model.eval()
    yield
    model.train(was_training)

"""Weights that stay as they are while the rest of the model is trained, chosen by name (`trainer.freeze`)."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, NoReturn

from torch import nn

from grpo_core.errors import Problem, RecipeError
from grpo_core.model.image_features import tower_of
from grpo_core.model.load import empty_model
from grpo_core.model.lora import empty_adapted_model
from grpo_core.recipe.complaints import did_you_mean
from grpo_core.recipe.schema import ModelSettings, TrainerSettings

__all__ = ["count_frozen", "freeze"]

VISION = "vision"
"""The name of the vision tower in every family."""


def freeze(model: Any, trainer: TrainerSettings) -> None:
    """Switch the gradient off of what `trainer.freeze` names; adapters are in the model already.

    Raises `RecipeError` for a name that is nowhere in the model, for one that has adapters, and where nothing would be
    left to train.
    """
    for number, name in enumerate(trainer.freeze):
        for weight, parameter in _named(model, name, number):
            if trainer.lora is not None and parameter.requires_grad:
                _fail(number, f"'{name}' has {weight}, which trainer.lora adds or trains; leave it out of trainer.lora")
            parameter.requires_grad_(False)
    if trainer.freeze and not any(parameter.requires_grad for parameter in model.parameters()):
        raise RecipeError([Problem(path="trainer.freeze", message="nothing of the model is left to train")])


def count_frozen(model: ModelSettings, trainer: TrainerSettings) -> int:
    """How many parameters `freeze` leaves untrained, beside adapters all of the model's own; from its config, without
    memory for a single weight. Raises what `freeze` does."""
    if not trainer.freeze:
        return 0
    empty = empty_model(model) if trainer.lora is None else empty_adapted_model(model, trainer.lora)
    freeze(empty, trainer)
    return sum(parameter.numel() for parameter in empty.parameters() if not parameter.requires_grad)


def _named(model: Any, name: str, number: int) -> Iterator[tuple[str, nn.Parameter]]:
    """The weights that a name stands for: those of modules whose name is it or ends in it, or that match it as a
    pattern; tied ones under each of their names."""
    weights = dict(model.named_parameters(remove_duplicate=False))
    if name == VISION:
        tower = {id(parameter) for parameter in _tower(model, number).parameters()}
        found = [(weight, parameter) for weight, parameter in weights.items() if id(parameter) in tower]
    else:
        found = [(weight, parameter) for weight, parameter in weights.items() if _is_in(weight, name)]
    if not found:
        _fail(number, f"{type(model).__name__} has no module or weight '{name}'; {_known(model, name)}")
    return iter(found)


def _is_in(weight: str, name: str) -> bool:
    """Whether a weight matches a pattern, or is in a module of that name, or of one that ends in it."""
    return fnmatchcase(weight, name) or f".{name}." in f".{weight}."


def _tower(model: Any, number: int) -> nn.Module:
    if not hasattr(model.config, "vision_config"):
        _fail(number, f"{type(model).__name__} reads text only and has no vision tower; {_known(model, VISION)}")
    return tower_of(model)


def _known(model: nn.Module, name: str) -> str:
    """The modules that there are, without layers of layers."""
    modules = [found for found, module in model.named_modules() if found and any(True for _ in module.parameters())]
    outer = [found for found in modules if found.count(".") <= 1]
    ends = list(dict.fromkeys(found.rpartition(".")[2] for found in modules if not found.rpartition(".")[2].isdigit()))
    near = did_you_mean(name, ends)
    return f"{near} It has {', '.join(outer)}" if near.startswith("did") else f"it has {', '.join(outer)}"


def _fail(number: int, message: str) -> NoReturn:
    raise RecipeError([Problem(path=f"trainer.freeze.{number}", message=message)]) from None

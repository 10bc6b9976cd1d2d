"""The model as stage 3 hides it: whole for generation and for files, in a second module of the same kind.

The trained module's own weights are spread and its layers gather them when they are called, on all ranks together.
Generation calls layers as often as a rank has tokens to decode. So it gets a module without weights of its own, which
is filled for as long as it is needed and empty otherwise.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from grpo_trainer_deepspeed.engine import whole

__all__ = ["Gathered"]


class Gathered:
    """A model like the trained one. Made before DeepSpeed has the trained one; every method is called on all ranks."""

    def __init__(self, model: Any) -> None:
        empty = {id(weight): _empty(weight) for weight in model.parameters()}
        self.model: Any = copy.deepcopy(model, dict(empty))
        self._places = _places(self.model)
        self._full = False

    def fill(self, trained: nn.Module, device: torch.device, *, keep: bool = True) -> None:
        """Copy the weights of the trained model; a rank that only helps to gather does not `keep` them."""
        self.clear()
        for name, weight in trained.named_parameters():
            full = whole(weight)
            if keep:
                self._put(name, nn.Parameter(full.to(device), requires_grad=False))
        if keep:
            for name, buffer in trained.named_buffers():
                owner, _, attribute = name.rpartition(".")
                setattr(self.model.get_submodule(owner), attribute, buffer.to(device))
        self._full = True

    def clear(self) -> None:
        """Free the weights."""
        if self._full:
            for name in self._places:
                self._put(name, _empty(self._places[name][0][0]._parameters[self._places[name][0][1]]))
        self._full = False

    def _put(self, name: str, weight: nn.Parameter) -> None:
        for module, attribute in self._places[name]:
            setattr(module, attribute, weight)


def _places(model: nn.Module) -> dict[str, list[tuple[nn.Module, str]]]:
    """Where each weight is, by the first of its names: a tied one is in several places."""
    places: dict[int, list[tuple[nn.Module, str]]] = {}
    for module in model.modules():
        for attribute, weight in module.named_parameters(recurse=False, remove_duplicate=False):
            places.setdefault(id(weight), []).append((module, attribute))
    return {name: places[id(weight)] for name, weight in model.named_parameters()}


def _empty(weight: Any) -> nn.Parameter:
    shape = getattr(weight, "ds_shape", weight.shape)
    return nn.Parameter(torch.empty(shape, dtype=weight.dtype, device="meta"), requires_grad=False)

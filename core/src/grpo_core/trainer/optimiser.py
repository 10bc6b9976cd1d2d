"""AdamW over the weights of a model, fp32 or bf16 with fp32 master weights.

A step of 5e-7 on a weight of 1 vanishes in bf16, whose neighbours of 1 are 0.4 % away. So weights of low precision
have a master in fp32, which is what AdamW changes; autograd adds the gradients of micro-batches up in fp32 too, in the
memory of the masters' own; after the step the masters are rounded into the model. fp32 weights are their own masters.

Gradient norm and clipping are here, the learning rate is the caller's (`schedule.py`), files are `checkpoint.py`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from grpo_core.recipe.schema import TrainerSettings
from grpo_core.trainer.shards import part, whole

__all__ = ["Optimiser"]

_PRECISE = (torch.float32, torch.float64)


class Optimiser:
    """An update is `begin`; a backward pass for each micro-batch; then `grad_norm`, `step` and `end`."""

    def __init__(self, parameters: Iterable[tuple[str, nn.Parameter]], settings: TrainerSettings) -> None:
        self._parameters = {name: parameter for name, parameter in parameters if parameter.requires_grad}
        self.masters: dict[str, Tensor] = {
            name: parameter if parameter.dtype in _PRECISE else parameter.detach().float()
            for name, parameter in self._parameters.items()
        }
        for name, parameter in self._parameters.items():
            if parameter is not self.masters[name]:
                parameter.grad_dtype = torch.float32
        self._max_grad_norm = settings.max_grad_norm
        self._adam = torch.optim.AdamW(
            _by_decay(self.masters, settings.weight_decay),
            lr=settings.learning_rate,
            betas=(settings.adam_beta1, settings.adam_beta2),
            eps=settings.adam_epsilon,
        )

    def begin(self) -> None:
        """Set every gradient to 0: weights that no micro-batch reaches are stepped on all the same."""
        for name, master in self.masters.items():
            self._parameters[name].grad = master.grad = torch.zeros_like(master)

    def gradients(self) -> list[Tensor]:
        """Of all masters, in order."""
        return [master.grad for master in self.masters.values() if master.grad is not None]

    def grad_norm(self) -> Tensor:
        """The 2-norm of the whole gradient, before clipping."""
        return whole(nn.utils.get_total_norm(self.gradients()))

    def step(self, learning_rate: float, grad_norm: Tensor) -> None:
        """Clip, step, and round the masters into the model."""
        if self._max_grad_norm is not None:
            nn.utils.clip_grads_with_norm_(self.masters.values(), self._max_grad_norm, grad_norm)
        for group in self._adam.param_groups:
            group["lr"] = learning_rate
        self._adam.step()
        self.write_back()

    def end(self) -> None:
        """Free the gradients; whatever comes next has the memory."""
        for name, master in self.masters.items():
            self._parameters[name].grad = master.grad = None

    @torch.no_grad()
    def write_back(self) -> None:
        """Round the masters into the model's weights."""
        for name, parameter in self._parameters.items():
            if parameter is not self.masters[name]:
                parameter.copy_(self.masters[name])

    def state(self) -> dict[str, Tensor]:
        """AdamW's own numbers as `exp_avg/<weight>` and so on; empty before the first step."""
        state = self._adam.state_dict()["state"]
        return {
            f"{key}/{name}": value
            for index, name in enumerate(self._order())
            for key, value in state.get(index, {}).items()
        }

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over what `state` gave."""
        indices = {name: index for index, name in enumerate(self._order())}
        state: dict[int, dict[str, Tensor]] = {}
        for key_and_name, value in tensors.items():
            key, name = key_and_name.split("/", 1)
            state.setdefault(indices[name], {})[key] = part(value, like=self.masters[name])
        self._adam.load_state_dict({**self._adam.state_dict(), "state": state})

    def _order(self) -> list[str]:
        names = {id(master): name for name, master in self.masters.items()}
        return [names[id(master)] for group in self._adam.param_groups for master in group["params"]]


def _by_decay(masters: Mapping[str, Tensor], weight_decay: float) -> list[dict[str, Any]]:
    """Decay is for matrices: norms and biases set scales that have no reason to be near 0."""
    matrices = [master for master in masters.values() if master.ndim >= 2]
    others = [master for master in masters.values() if master.ndim < 2]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]

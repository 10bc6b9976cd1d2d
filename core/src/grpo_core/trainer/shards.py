"""Weights, gradients and AdamW's numbers spread over ranks by FSDP2 (`fully_shard`), for models that do not fit.

Each rank keeps a part of every weight, in fp32; layers are gathered as they are needed, in the precision of the run,
and gradients are summed in fp32 as they are scattered. For generation the model is gathered whole, once: ranks then
decode different numbers of tokens and must not wait for each other at every layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from grpo_core.trainer.policy import PolicyModule

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule

__all__ = ["gather", "part", "scatter", "shard", "whole"]


def shard(policy: PolicyModule, device: torch.device, *, world_size: int, compute: torch.dtype) -> None:
    """Spread the weights over all ranks, layer by layer; `compute` is the type they are gathered in."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh(device.type, (world_size,))
    mixed = MixedPrecisionPolicy(
        param_dtype=compute if compute != torch.float32 else None,
        reduce_dtype=torch.float32,
        cast_forward_inputs=False,
    )
    layers = set(policy.model._no_split_modules or ())
    for module in [each for each in policy.model.modules() if type(each).__name__ in layers]:
        fully_shard(module, mesh=mesh, mp_policy=mixed)
    fully_shard(policy, mesh=mesh, mp_policy=mixed)
    for each in _sharded(policy):
        # The loss is divided by the denominators of the whole update already: a sum, not a mean.
        each.set_gradient_divide_factor(1.0)
        each.set_force_sum_reduction_for_comms(True)


def gather(policy: PolicyModule) -> None:
    """Make every weight whole on every rank until `scatter`."""
    for each in _sharded(policy):
        each.set_reshard_after_forward(False, recurse=False)
        each.unshard()


def scatter(policy: PolicyModule) -> None:
    """Keep this rank's part alone again."""
    for each in _sharded(policy):
        each.reshard()
        each.set_reshard_after_forward(not isinstance(each, PolicyModule), recurse=False)  # the root is needed at once


def whole(tensor: Tensor) -> Tensor:
    """The whole of a tensor that may be spread; called by all ranks together."""
    if not _is_spread(tensor):
        return tensor.detach()
    full: Tensor = tensor.full_tensor()  # type: ignore[attr-defined]
    return full.detach()


def part(full: Tensor, like: Tensor) -> Tensor:
    """This rank's part of `full`, spread as `like` is; nothing is sent."""
    if not _is_spread(like) or full.ndim == 0:
        return full
    from torch.distributed.tensor import distribute_tensor

    mesh, placements = like.device_mesh, like.placements  # type: ignore[attr-defined]
    return distribute_tensor(full.to(like.device), mesh, placements, src_data_rank=None)


def _is_spread(tensor: Tensor) -> bool:
    """Whether it is a `DTensor`, whose module takes long to import."""
    return hasattr(tensor, "full_tensor")


def _sharded(policy: nn.Module) -> Iterator[FSDPModule]:
    from torch.distributed.fsdp import FSDPModule

    return (module for module in policy.modules() if isinstance(module, FSDPModule))

"""What trainers on several ranks tell each other in an update. With one rank there is nothing to tell.

Every rank has a copy of the weights and forwards its own completions; gradients are added up over ranks once an
update, in the precision of the masters, whatever the precision of the model. Nothing is averaged: the loss is divided
by the denominators of the whole update already. (DistributedDataParallel would average, reduce bf16 gradients in bf16,
and demand a gradient for every weight in the last micro-batch.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from grpo_core.objective.sums import MetricSums
from grpo_core.trainer.rounds import Round
from grpo_core.trainer.rows import DUMMY, Row

__all__ = ["Spread"]

_BUCKET_VALUES = 2**25
"""Gradients summed in one go: 128 MiB in fp32, beside the gradients themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The trainers of a run, seen from one of them. Every method is called by all of them together."""

    world_size: int
    """How many there are."""
    device: torch.device
    """Where this one's tensors are."""

    def same(self, module: nn.Module) -> None:
        """Give every rank rank 0's weights: files on two machines may differ."""
        if self.world_size > 1:
            for tensor in (*module.parameters(), *module.buffers()):
                dist.broadcast(tensor.detach(), src=0)

    def even(self, rounds: Sequence[Round]) -> list[Round]:
        """The rounds, with dummies where another rank has more of them, or more micro-batches in one. What is text only
        is the last round, as on every rank."""
        if self.world_size == 1:
            return list(rounds)
        is_shared = rounds[0].is_shared
        visual = [each.packs for each in rounds if each.has_images]
        text = [pack for each in rounds if not each.has_images for pack in each.packs]
        (count,) = self._most([len(visual)])
        visual += [()] * (count - len(visual))
        *longest, texts = self._most([len(packs) for packs in (*visual, text)])
        evened = [
            Round(packs=_filled(packs, length), has_images=True, is_shared=is_shared)
            for packs, length in zip(visual, longest, strict=True)
        ]
        return [*evened, Round(packs=_filled(text, texts), is_shared=is_shared)] if texts else evened

    def _most(self, counts: Sequence[int]) -> list[int]:
        """The largest number of any rank for each."""
        most = torch.tensor(counts, device=self.device)
        dist.all_reduce(most, op=dist.ReduceOp.MAX)
        return [int(count) for count in most.tolist()]

    def agrees(self, flag: bool) -> bool:
        """Whether it is true on every rank."""
        if self.world_size == 1:
            return flag
        least = torch.tensor(int(flag), device=self.device)
        dist.all_reduce(least, op=dist.ReduceOp.MIN)
        return bool(least)

    def total(self, values: Sequence[float]) -> list[float]:
        """Each value summed over ranks."""
        if self.world_size == 1:
            return list(values)
        summed = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(summed)
        return [float(value) for value in summed.tolist()]

    def total_sums(self, sums: MetricSums) -> MetricSums:
        """The metrics of the update over all ranks."""
        if self.world_size > 1:
            dist.all_reduce(sums.sums_K)
            dist.all_reduce(sums.largest_M, op=dist.ReduceOp.MAX)
        return sums

    def sum_gradients(self, gradients: Sequence[Tensor]) -> None:
        """Each gradient summed over ranks, in place."""
        if self.world_size == 1:
            return
        for bucket in _buckets(gradients):
            flat = torch.cat([gradient.flatten() for gradient in bucket])
            dist.all_reduce(flat)
            for gradient, part in zip(bucket, torch.split(flat, [g.numel() for g in bucket]), strict=True):
                gradient.copy_(part.view_as(gradient))


def _filled(packs: Sequence[tuple[Row, ...]], length: int) -> tuple[tuple[Row, ...], ...]:
    return (*packs, *[(DUMMY,)] * (length - len(packs)))


def _buckets(gradients: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Neighbours of one type, up to the size of a bucket."""
    bucket: list[Tensor] = []
    values = 0
    for gradient in gradients:
        full = values + gradient.numel() > _BUCKET_VALUES
        if bucket and (full or gradient.dtype != bucket[0].dtype):
            yield bucket
            bucket, values = [], 0
        bucket.append(gradient)
        values += gradient.numel()
    if bucket:
        yield bucket

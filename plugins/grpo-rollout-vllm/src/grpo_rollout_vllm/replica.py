"""The ranks that share one engine: they must ask it the same things in the same order, and each wants its own answers.

Place in the flow: requests of a rank → **replica** → requests of all its ranks → engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.distributed as dist

from grpo_core.api import RolloutError, RolloutRequest
from grpo_core.backends import BackendContext

__all__ = ["Replica"]


class Replica:
    """The neighbouring ranks of one engine, seen from one of them."""

    def __init__(self, context: BackendContext, ranks: int) -> None:
        """Made by all ranks together; raises `RolloutError` when they cannot be divided."""
        if context.world_size % ranks:
            raise RolloutError(
                f"rollout.options.tensor_parallel is {ranks}, and {context.world_size} ranks cannot be divided by it",
                hint="start a multiple of it with --nproc-per-node",
            )
        self._place = context.rank % ranks
        self._group: Any = None
        if ranks > 1:
            firsts = range(0, context.world_size, ranks)
            groups = [dist.new_group(list(range(first, first + ranks)), backend="gloo") for first in firsts]
            self._group = groups[context.rank // ranks]
        self._ranks = ranks

    def together(self, requests: Sequence[RolloutRequest]) -> list[tuple[RolloutRequest, bool]]:
        """The requests of all its ranks, and whether they are this rank's; the same list on each of them."""
        if self._group is None:
            return [(request, True) for request in requests]
        everyones: list[Any] = [None] * self._ranks
        dist.all_gather_object(everyones, list(requests), group=self._group)
        # Core knows its requests by identity, so this rank's own come from its own list.
        everyones[self._place] = list(requests)
        return [(request, place == self._place) for place, each in enumerate(everyones) for request in each]

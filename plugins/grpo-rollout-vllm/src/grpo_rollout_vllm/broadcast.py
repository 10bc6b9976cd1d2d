"""Weights over the network: a group of the run's rank 0 and all workers of one server, beside whatever groups there
are.

NCCL where both ends have GPUs, gloo otherwise, which listens at the addresses that the ends met at; NCCL chooses its
own (NCCL_SOCKET_IFNAME). A group lives for one transfer: nothing is left over when an end dies.

Place in the flow: spool → **broadcast** → a server's workers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import PrefixStore

from grpo_rollout_vllm.meeting import Meeting, Visit

__all__ = ["Broadcast", "TensorFact"]

_TICK_S = 0.01


@dataclass(frozen=True, slots=True)
class TensorFact:
    """What a receiver must know of a tensor before it comes."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, name: str, tensor: Tensor) -> TensorFact:
        """Of a tensor that will be sent."""
        return cls(name, str(tensor.dtype).partition(".")[2], tuple(tensor.shape))

    @classmethod
    def read(cls, written: Sequence[Any]) -> TensorFact:
        """From JSON."""
        name, dtype, shape = written
        return cls(name, dtype, tuple(shape))

    def written(self) -> list[Any]:
        """As JSON."""
        return [self.name, self.dtype, list(self.shape)]


class Broadcast:
    """One end of a transfer; a context manager."""

    def __init__(
        self, met: Meeting | Visit, address: str, *, rank: int, members: int, device: torch.device, limit_s: float
    ) -> None:
        self._device = device
        self._met = met
        limit = timedelta(seconds=limit_s)
        prefixed = PrefixStore("grpo", met.store)
        if device.type == "cuda":
            options = dist.ProcessGroupNCCL.Options()
            options._timeout = limit
            self._group: Any = dist.ProcessGroupNCCL(prefixed, rank, members, options)
        else:
            gloo: Any = dist.ProcessGroupGloo
            own = gloo._Options()
            own._devices, own._timeout = [gloo.create_device(hostname=address)], limit
            self._group = gloo(prefixed, rank, members, own)

    @classmethod
    def join(
        cls, host: str, port: int, secret: str, *, rank: int, members: int, device: torch.device, limit_s: float
    ) -> Broadcast:
        """The receiving end, rank 1 or above; `secret` is that of the meeting at `host`."""
        visit = Visit(host, port, secret, limit_s=limit_s)
        visit.store.set_timeout(timedelta(seconds=limit_s))
        visit.store.set(_arrival(rank), "")
        try:
            return cls(visit, visit.own_address, rank=rank, members=members, device=device, limit_s=limit_s)
        except BaseException:
            visit.close()
            raise

    @classmethod
    def open(
        cls, meeting: Meeting, *, members: int, device: torch.device, limit_s: float, given_up: Callable[[], bool]
    ) -> Broadcast:
        """The sending end, once all others are there; raises `RuntimeError` when they do not come in time or
        `given_up` says that they will not."""
        until = time.monotonic() + limit_s
        arrivals = [_arrival(rank) for rank in range(1, members)]
        meeting.store.set_timeout(timedelta(seconds=limit_s))
        while not meeting.store.check(arrivals):
            if given_up() or time.monotonic() > until:
                raise RuntimeError(f"not all of {members - 1} workers came to take the weights")
            time.sleep(_TICK_S)
        return cls(meeting, meeting.address, rank=0, members=members, device=device, limit_s=limit_s)

    def send(self, tensors: Iterable[tuple[str, Tensor]]) -> None:
        """Send each to every other member."""
        for _, tensor in tensors:
            self._share(tensor.to(self._device).contiguous())

    def receive(self, facts: Sequence[TensorFact]) -> Iterator[tuple[str, Tensor]]:
        """The tensors as they come."""
        for fact in facts:
            tensor = torch.empty(fact.shape, dtype=getattr(torch, fact.dtype), device=self._device)
            self._share(tensor)
            yield fact.name, tensor

    def _share(self, tensor: Tensor) -> None:
        options = dist.BroadcastOptions()
        options.rootRank = 0
        options.rootTensor = 0
        # Bytes: gloo knows fewer types than torch does.
        self._group.broadcast([tensor.flatten().view(torch.uint8)], options).wait()

    def __enter__(self) -> Broadcast:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._group = None
        self._met.close()


def _arrival(rank: int) -> str:
    return f"grpo-arrived-{rank}"

"""Where the launchers of a run's machines meet before they start anything: a store on machine 0, and each one's number
in it.

torch's own rendezvous waits inside one call, in which no Ctrl-C is heard. This one looks, and sleeps between looks.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import torch.distributed as dist
from torch.distributed.elastic.rendezvous import RendezvousInfo
from torch.distributed.elastic.rendezvous.static_tcp_rendezvous import StaticTCPRendezvous

from grpo_core.ranks.listening import make_store

__all__ = ["Meeting"]

logger = logging.getLogger("grpo_core")

_TICK_S = 0.1
_TELL_AFTER_S = 10.0
"""A wait is told of when it is as long as that."""
_CONNECT_LIMIT_S = 5.0


class Meeting(StaticTCPRendezvous):
    """As seen from one machine, number `rank` of `world_size`; no wait in it is longer than `timeout` seconds."""

    def next_rendezvous(self) -> RendezvousInfo:
        """Meet; raises `RuntimeError` that says who did not come."""
        if self._store is None:
            self._store = self._meet()
        return super().next_rendezvous()

    def _meet(self) -> Any:
        started = time.monotonic()
        if self.rank > 0:
            self._await(started, "machine 0", self._is_there)
        store = self._keep() if self.rank == 0 else self._reach()
        store.set_timeout(self.timeout)
        store.set(_key(self.run_id, self.rank), "")
        for other in range(self.world_size):
            self._await(started, f"machine {other}", partial(store.check, [_key(self.run_id, other)]))
        return store

    def _keep(self) -> Any:
        try:
            return make_store(self.master_addr, self.master_port, limit_s=_CONNECT_LIMIT_S)
        except OSError as error:
            raise RuntimeError(f"nothing can listen there: {error.strerror or error}") from error

    def _reach(self) -> Any:
        limit = timedelta(seconds=_CONNECT_LIMIT_S)
        return dist.TCPStore(self.master_addr, self.master_port, timeout=limit, wait_for_workers=False)

    def _is_there(self) -> bool:
        try:
            socket.create_connection((self.master_addr, self.master_port), timeout=1.0).close()
        except OSError:
            return False
        return True

    def _await(self, started: float, whom: str, has_come: Callable[[], bool]) -> None:
        told, limit_s = False, self.timeout.total_seconds()
        while not has_come():
            waited_s = time.monotonic() - started
            if waited_s > limit_s:
                raise RuntimeError(f"{whom} did not come in {limit_s:.0f} s")
            if waited_s > _TELL_AFTER_S and not told:
                told = True
                place = f"{self.master_addr}, port {self.master_port}"
                logger.warning("machine %d waits at %s for %s, for up to %.0f s", self.rank, place, whom, limit_s)
            time.sleep(_TICK_S)


def _key(run_id: str, machine: int) -> str:
    return f"{run_id}/machine/{machine}"

"""The key-value store that all ranks reach, kept by the launcher or by rank 0. For short texts: torch's store takes no
more than 8 MiB at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import torch.distributed as dist

from grpo_core.errors import RankError
from grpo_core.ranks.listening import make_store
from grpo_core.ranks.place import Place

__all__ = ["KeyStore", "Store", "death_key", "open_store"]

Answer = TypeVar("Answer")


class KeyStore(Protocol):
    """What ranks use of a store. Each of these raises `RankError` when the store is gone."""

    def set(self, key: str, text: str) -> None:
        """Write; whatever was there is gone."""
        ...

    def get(self, key: str) -> str:
        """Read a key that is there."""
        ...

    def has(self, keys: Sequence[str]) -> bool:
        """Whether all of them are there."""
        ...

    def delete(self, key: str) -> None:
        """Remove a key."""
        ...

    def set_first(self, key: str, text: str) -> str:
        """Write unless something is there; gives what is there now."""
        ...


class Store:
    """`torch.distributed.TCPStore`, seen by one thread."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def clone(self) -> Store:
        """The same store over another connection, for another thread."""
        return Store(_ask(self.inner.clone))

    def set(self, key: str, text: str) -> None:
        """Write."""
        _ask(lambda: self.inner.set(key, text))

    def get(self, key: str) -> str:
        """Read, waiting until the key is there."""
        value: bytes = _ask(lambda: self.inner.get(key))
        return value.decode()

    def has(self, keys: Sequence[str]) -> bool:
        """Whether all of them are there."""
        found: bool = _ask(lambda: self.inner.check(list(keys)))
        return found

    def delete(self, key: str) -> None:
        """Remove a key."""
        _ask(lambda: self.inner.delete_key(key))

    def set_first(self, key: str, text: str) -> str:
        """Write unless something is there."""
        value: bytes = _ask(lambda: self.inner.compare_set(key, "", text))
        return value.decode()


def open_store(place: Place, *, limit_s: float) -> Store:
    """Connect to the run's store; rank 0 makes it where the launcher does not keep it."""
    address, port = place.master_address, place.master_port
    try:
        if place.rank == 0 and not place.agent_keeps_store:
            return Store(make_store(address, port, limit_s=limit_s))
        return Store(dist.TCPStore(address, port, timeout=timedelta(seconds=limit_s), wait_for_workers=False))
    except (RuntimeError, OSError) as error:
        raise RankError(
            f"rank {place.rank} waited {limit_s:.0f} s in 'start' for the store of the run at "
            f"{address}, port {port}: {error}",
            hint="MASTER_ADDR and MASTER_PORT must name rank 0's machine and a free port that the others reach",
        ) from error


def death_key(rank: int) -> str:
    """Where a launcher writes how a process of its own ended: `signal 9`."""
    return f"death/{rank}"


def _ask(question: Callable[[], Answer]) -> Answer:
    try:
        return question()
    except RuntimeError as error:  # torch's network errors
        raise RankError(
            "the store of the run is gone: the process that keeps it (the launcher, or rank 0) died",
            hint="look at what that process printed last",
        ) from error

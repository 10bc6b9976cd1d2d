"""What the loop asks of the processes of a run, and the answer of a process that trains alone.

The loop is written once: every rank runs it, and says the same things in the same order. With one rank nothing is
sent, there is no process group, and torch's distributed package is not imported.

`group.py` is the answer of several processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeVar

from grpo_core.ranks.failure import Word

__all__ = ["ALONE", "Alone", "Ranks"]

Value = TypeVar("Value")


class Ranks(Protocol):
    """The processes that train together, seen from one of them. What has a value for everyone is called by everyone."""

    @property
    def rank(self) -> int:
        """Of this process, from 0."""
        ...

    @property
    def world_size(self) -> int:
        """How many there are."""
        ...

    @property
    def local_rank(self) -> int:
        """Of this process among those on its machine."""
        ...

    @property
    def local_world_size(self) -> int:
        """How many are on this machine."""
        ...

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which writes, prints and is watched."""
        ...

    def stage(self, name: str) -> AbstractContextManager[None]:
        """What happens in this context is called `name` in every message about waits and deaths."""
        ...

    def gather(self, value: Value) -> list[Value]:
        """Everyone's values, in order of rank; returns when all ranks have come."""
        ...

    def collect(self, value: Value) -> list[Value]:
        """The same on rank 0; an empty list everywhere else."""
        ...

    def from_first(self, value: Value | None) -> Value:
        """Rank 0's value, everywhere; what others give is not used."""
        ...

    def exchange(self, outgoing: Sequence[Value]) -> list[Value]:
        """Send `outgoing[r]` to rank r; what came from each rank, in order of rank."""
        ...

    def stopped(self) -> BaseException | None:
        """The failure of another rank, once this one has heard of it."""
        ...

    def settle(self, error: BaseException) -> BaseException:
        """Tell all ranks that this one failed; gives the error that stops the run: this one, or an earlier one."""
        ...

    def regroup(self, word: Word) -> AbstractContextManager[list[Word]]:
        """After `settle`, everyone's words, in order of rank. In the context what ranks say to each other works once
        more, and every one of them enters it. Raises `RankError`, on all that are left, when one does not come."""
        ...


class Alone:
    """One process. It is all ranks there are."""

    rank = 0
    world_size = 1
    local_rank = 0
    local_world_size = 1
    is_first = True

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Nobody asks."""
        yield

    def gather(self, value: Value) -> list[Value]:
        """Its own."""
        return [value]

    def collect(self, value: Value) -> list[Value]:
        """Its own."""
        return [value]

    def from_first(self, value: Value | None) -> Value:
        """Its own."""
        assert value is not None
        return value

    def exchange(self, outgoing: Sequence[Value]) -> list[Value]:
        """Its own."""
        return list(outgoing)

    def stopped(self) -> BaseException | None:
        """There is no other rank."""
        return None

    def settle(self, error: BaseException) -> BaseException:
        """Nobody else is to be told."""
        return error

    @contextmanager
    def regroup(self, word: Word) -> Iterator[list[Word]]:
        """Its own."""
        yield [word]


ALONE: Ranks = Alone()
"""For a process that trains alone."""

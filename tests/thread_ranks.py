"""Threads that play ranks, for tests of what ranks say to each other that need no real processes.

Example: `results = as_ranks(2, lambda ranks: ranks.gather(ranks.rank))` gives `[[0, 1], [0, 1]]`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from grpo_core.ranks.failure import Word

Value = TypeVar("Value")


@dataclass(slots=True)
class _Table:
    """Where all of them put what they say."""

    barrier: threading.Barrier
    said: dict[int, Any] = field(default_factory=dict)


class ThreadRanks:
    """Implements `Ranks`. A rank that fails ends the waits of the others."""

    def __init__(self, rank: int, world_size: int, table: _Table) -> None:
        self.rank, self.world_size = rank, world_size
        self.local_rank, self.local_world_size = rank, world_size
        self.is_first = rank == 0
        self.waits: list[str] = []
        self._table = table
        self._stage = ""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        before, self._stage = self._stage, name
        yield
        self._stage = before

    def gather(self, value: Value) -> list[Value]:
        self.waits.append(self._stage)
        self._table.barrier.wait(120)
        self._table.said[self.rank] = value
        self._table.barrier.wait(120)
        found = [self._table.said[rank] for rank in range(self.world_size)]
        self._table.barrier.wait(120)
        return found

    def collect(self, value: Value) -> list[Value]:
        found = self.gather(value)
        return found if self.is_first else []

    def from_first(self, value: Value | None) -> Value:
        return self.gather(value)[0]  # type: ignore[return-value]

    def exchange(self, outgoing: Sequence[Value]) -> list[Value]:
        return [row[self.rank] for row in self.gather(list(outgoing))]

    def stopped(self) -> BaseException | None:
        return None

    def settle(self, error: BaseException) -> BaseException:
        return error

    @contextmanager
    def regroup(self, word: Word) -> Iterator[list[Word]]:
        yield self.gather(word)

    def abort(self) -> None:
        """End the waits of the others."""
        self._table.barrier.abort()


def as_ranks(count: int, function: Callable[[ThreadRanks], Value]) -> list[Value]:
    """Call `function` once in each of `count` threads; what it gave, in order of rank. Raises what a rank raised."""
    table = _Table(threading.Barrier(count))
    results: dict[int, Value] = {}
    errors: dict[int, BaseException] = {}

    def run(rank: int) -> None:
        ranks = ThreadRanks(rank, count, table)
        try:
            results[rank] = function(ranks)
        except BaseException as error:  # noqa: BLE001 - raised again in the test's thread
            errors[rank] = error
            ranks.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    real = [error for error in errors.values() if not isinstance(error, threading.BrokenBarrierError)]
    if errors:
        raise (real or list(errors.values()))[0]
    return [results[rank] for rank in range(count)]

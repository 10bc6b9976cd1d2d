"""The board that all ranks write to: where each of them is, who has arrived at which wait, and the run's one failure.

It lies on torch's key-value store. Only short texts go over it; data goes over the process group, once all are there.
Every wait has a name (the stage that it is in), a limit, and an error that says who waits for whom and since when.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from grpo_core.errors import RankError
from grpo_core.ranks.failure import Failure, PeerError, Word
from grpo_core.ranks.store import KeyStore

__all__ = ["Board", "Position"]

_AGAIN = "again/"
_FIRST_PAUSE_S = 0.0005
_LONGEST_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """What a rank does."""

    stage: str
    """Its name."""
    since_s: float
    """Seconds since 1970 when it began."""
    waits: bool
    """Whether it waits for the others there."""
    pid: int
    """Of its process."""

    def described(self) -> str:
        """As part of a sentence."""
        clock = time.strftime("%H:%M:%S", time.localtime(self.since_s))
        verb = "has waited for others" if self.waits else "has been"
        return f"{verb} in '{self.stage}' since {clock} (process {self.pid})"


class Board:
    """One rank's view. Used by one thread; another one needs a board of its own, on a clone of the store."""

    def __init__(self, store: KeyStore, *, rank: int, world_size: int, limit_s: float) -> None:
        self.limit_s = limit_s
        self._store = store
        self._rank = rank
        self._world_size = world_size
        self._waits = 0
        self._stage = "start"
        self._prefix = ""

    @property
    def stage(self) -> str:
        """The stage this rank is in."""
        return self._stage

    def enter(self, stage: str, *, waits: bool = False) -> None:
        """Say that this rank is in `stage` from now on."""
        self._stage = stage
        position = Position(stage=stage, since_s=time.time(), waits=waits, pid=os.getpid())
        self._store.set(_at(self._rank), json.dumps(asdict(position)))

    def position(self, rank: int) -> Position | None:
        """Where a rank is; None: it has not said anything yet."""
        return Position(**json.loads(self._store.get(_at(rank)))) if self._store.has([_at(rank)]) else None

    def arrive(self) -> None:
        """Wait until every rank has arrived at this same wait.

        Raises `PeerError` as soon as a rank has failed, and `RankError` when the limit is over or when ranks are in
        different stages, which is a fault in the program.
        """
        stage, number = self._stage, self._waits
        self._waits += 1
        keys = [self._wait(number, rank) for rank in range(self._world_size)]
        self._store.set(keys[self._rank], stage)
        if not self._store.has(keys):
            self.enter(stage, waits=True)
            self._wait_for(keys, self.limit_s)
            self.enter(stage)
        stages = [self._store.get(key) for key in keys]
        if len(set(stages)) > 1:
            raise RankError(f"ranks wait for each other in different stages, in order of rank: {', '.join(stages)}")
        if number >= 2:  # whoever is here has left the wait before the last one
            self._store.delete(self._wait(number - 2, self._rank))

    def begin_again(self) -> None:
        """Leave the failure and all waits behind: what is said from now on is about what ranks do after it."""
        self._prefix, self._waits = _AGAIN, 0

    def say(self, word: Word) -> None:
        """Give this rank's word; the first one counts."""
        self._store.set_first(_word(self._rank), word.to_text())

    def hear(self, limit_s: float) -> list[Word]:
        """Everyone's words, in order of rank; raises as `arrive` does when one does not come."""
        keys = [_word(rank) for rank in range(self._world_size)]
        self._wait_for(keys, limit_s)
        return [Word.from_text(self._store.get(key)) for key in keys]

    def failure(self) -> Failure | None:
        """The failure, if there is one."""
        key = f"{self._prefix}failure"
        return Failure.from_text(self._store.get(key)) if self._store.has([key]) else None

    def post(self, failure: Failure) -> Failure:
        """Say that the run, or what is done after its failure, has failed; gives the failure that was said first."""
        return Failure.from_text(self._store.set_first(f"{self._prefix}failure", failure.to_text()))

    def late(self, ranks: Sequence[int], waited_s: float) -> RankError:
        """The error of a wait that took too long."""
        places = "; ".join(f"rank {rank}, which {self._described(rank)}" for rank in ranks)
        return RankError(
            f"rank {self._rank} waited {waited_s:.0f} s in '{self._stage}' for {places or 'the others'}",
            hint="see what that process does (py-spy dump --pid N), or set run.wait_limit_s higher if it is just slow",
        )

    def _wait_for(self, keys: list[str], limit_s: float) -> None:
        started, pause_s = time.monotonic(), _FIRST_PAUSE_S
        while not self._store.has(keys):
            failure = self.failure()
            if failure is not None:
                raise PeerError(failure)
            waited_s = time.monotonic() - started
            if waited_s > limit_s:
                raise self.late([rank for rank, key in enumerate(keys) if not self._store.has([key])], waited_s)
            time.sleep(pause_s)
            pause_s = min(1.5 * pause_s, _LONGEST_PAUSE_S)

    def _described(self, rank: int) -> str:
        position = self.position(rank)
        return "has not come up" if position is None else position.described()

    def _wait(self, number: int, rank: int) -> str:
        return f"{self._prefix}wait/{number}/{rank}"


def _at(rank: int) -> str:
    return f"at/{rank}"


def _word(rank: int) -> str:
    return f"{_AGAIN}word/{rank}"

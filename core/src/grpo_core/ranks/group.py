"""Several processes: the store, the lifelines, torch's process group, and what the loop asks of them."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import TypeVar, cast

import torch
import torch.distributed as dist

from grpo_core.errors import RankError
from grpo_core.orphans import part_from_parent
from grpo_core.ranks.board import Board
from grpo_core.ranks.failure import PeerError, Word, failure_of
from grpo_core.ranks.lifeline import connect, listen
from grpo_core.ranks.place import Place
from grpo_core.ranks.ranks import ALONE, Ranks
from grpo_core.ranks.room import gpu_of
from grpo_core.ranks.store import open_store
from grpo_core.ranks.watch import Watch

__all__ = ["Group", "Opening", "open_ranks"]

CONNECT_LIMIT_S = 600.0
"""For all processes to come up."""
_ELSEWHERE_LIMIT_S = 2.0
"""How long a rank whose connection broke waits for the reason, which another one may be about to post."""
_FIRST_LEAVES_S = 5.0
"""After a failure rank 0 leaves first, so that its last words are not cut off by a launcher that sees others end."""
_MEET_LIMIT_S = 15.0
"""After a failure, for ranks to meet: each has come by then, or was ended by its watch."""
_LAST_GRACE_S = 60.0
"""For what a rank closes when it ends."""
_TIMED_OUT = "Timed out waiting"
_FIRST_WORD_S = 0.3
"""Where every rank has the same error, rank 0 is to be the one that says so."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What rank 0 tells the others before anything else, over the store."""

    wait_limit_s: float
    """No wait is longer, from then on."""
    run: str = ""
    """The run's folder."""
    checkpoint: str | None = None
    """Where it goes on from; None: it begins."""
    plan: str = ""
    """Its plan, as JSON."""


@contextmanager
def open_ranks(place: Place | None, opening: Callable[[], Opening]) -> Iterator[tuple[Ranks, Opening]]:
    """The ranks of this run, and what rank 0 opens it with; None: this process alone. Only rank 0 calls `opening`."""
    if place is None:
        yield ALONE, opening()
        return
    group = Group(place)
    try:
        try:
            yield group, group.begin(opening)
        except BaseException as error:
            first = group.settle(error)
            if first is error:
                raise
            raise first from error
    finally:
        group.close()


class Group:
    """Implements `Ranks`."""

    def __init__(self, place: Place) -> None:
        """Connect to the store and to rank 0."""
        self.rank, self.world_size = place.rank, place.world_size
        self.local_rank, self.local_world_size = place.local_rank, place.local_world_size
        self.is_first = place.rank == 0
        self._store = open_store(place, limit_s=CONNECT_LIMIT_S)
        self._board = Board(self._store, rank=place.rank, world_size=place.world_size, limit_s=CONNECT_LIMIT_S)
        self._board.enter("start")
        if self.is_first:
            lifeline = listen(
                place.master_address,
                place.world_size,
                limit_s=CONNECT_LIMIT_S,
                publish=lambda text: self._store.set("lifeline", text),
            )
        else:
            published = self._store.get("lifeline")
            lifeline = connect(place.master_address, published, place.rank, limit_s=CONNECT_LIMIT_S)
        store = self._store.clone()
        board = Board(store, rank=place.rank, world_size=place.world_size, limit_s=CONNECT_LIMIT_S)
        self._waiting = False
        self._begun = self._done = 0  # exchanges of data
        self._settled: BaseException | None = None
        self._watch = Watch(board, store, lifeline, rank=place.rank, doing=self._doing)
        part_from_parent(looks_late=True)  # the watch ends this process in a few seconds, with a word

    def begin(self, opening: Callable[[], Opening]) -> Opening:
        """Hear from rank 0 what is to be done, and make the process group."""
        if self.is_first:
            self._store.set("opening", json.dumps(asdict(opening())))
        self._arrive()
        opened = Opening(**json.loads(self._store.get("opening")))
        self._board.limit_s = opened.wait_limit_s
        limit = timedelta(seconds=opened.wait_limit_s)
        with self.stage("start"), self._translated():
            dist.init_process_group(
                _backend(self.local_rank),
                store=dist.PrefixStore("group", self._store.inner),
                rank=self.rank,
                world_size=self.world_size,
                timeout=limit,
            )
            self._objects = dist.new_group(backend="gloo", timeout=limit)
        return opened

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Name what happens in the context."""
        before = self._board.stage
        self._board.enter(name)
        yield
        self._board.enter(before)

    def gather(self, value: Value) -> list[Value]:
        """Everyone's values, in order of rank."""
        self._arrive()
        values: list[Value | None] = [None] * self.world_size
        with self._translated():
            dist.all_gather_object(values, value, group=self._objects)
        return cast(list[Value], values)

    def collect(self, value: Value) -> list[Value]:
        """Everyone's values on rank 0."""
        self._arrive()
        values: list[Value | None] | None = [None] * self.world_size if self.is_first else None
        with self._translated():
            dist.gather_object(value, values, dst=0, group=self._objects)
        return cast(list[Value], values or [])

    def from_first(self, value: Value | None) -> Value:
        """Rank 0's value."""
        self._arrive()
        values = [value]
        with self._translated():
            dist.broadcast_object_list(values, src=0, group=self._objects)
        return cast(Value, values[0])

    def exchange(self, outgoing: Sequence[Value]) -> list[Value]:
        """Send one value to each rank, and get one from each."""
        packed = [torch.frombuffer(bytearray(pickle.dumps(value)), dtype=torch.uint8) for value in outgoing]
        sizes = self.gather([len(each) for each in packed])
        incoming = [row[self.rank] for row in sizes]
        received = torch.empty(sum(incoming), dtype=torch.uint8)
        with self._translated():
            dist.all_to_all_single(
                received, torch.cat(packed), incoming, [len(each) for each in packed], group=self._objects
            )
        return [pickle.loads(part.numpy().tobytes()) for part in torch.split(received, incoming)]

    def stopped(self) -> BaseException | None:
        """The failure of another rank that the watch has heard of."""
        failure = self._watch.failure
        return None if failure is None else PeerError(failure)

    def settle(self, error: BaseException) -> BaseException:
        """Post the error, unless another rank's was first; the answer stays the same from then on."""
        if self._settled is None:
            self._watch.allow(_LAST_GRACE_S)  # it need not wake this thread
            self._settled = self._first(error)
            self._watch.allow(_LAST_GRACE_S)
        return self._settled

    @contextmanager
    def regroup(self, word: Word) -> Iterator[list[Word]]:
        """Everyone's words. Ranks that wait for each other here have left whatever they were in, and say so; so a
        collective that one of them did not finish is in the word of that one."""
        self._watch.allow(2 * _MEET_LIMIT_S)
        failure = self._board.failure()
        self._board.begin_again()
        self._board.enter("last checkpoint")
        if self._begun != self._done:
            word = replace(word, obstacle="ranks were in the middle of an exchange")
        self._board.say(replace(word, exchanges=self._done))
        if failure is not None and failure.is_death:
            raise RankError(f"rank {failure.rank} is gone")
        words = self._board.hear(_MEET_LIMIT_S)
        self._watch.allow(self._board.limit_s)
        try:
            yield words
        except BaseException as error:
            with suppress(RankError):  # the store is gone: so are the others
                self._board.post(failure_of(error, self.rank))
            raise
        finally:
            self._watch.allow(_LAST_GRACE_S)

    def close(self) -> None:
        """Wait for the others, and leave the group."""
        clean = self._settled is None
        if not clean:
            with suppress(RankError):
                self._board.say(Word(obstacle=f"rank {self.rank} has left"))  # where it gave none
        self._watch.end(self._board.limit_s if clean else 0.0 if self.is_first else _FIRST_LEAVES_S)
        if dist.is_initialized() and clean:
            dist.destroy_process_group()

    def _first(self, error: BaseException) -> BaseException:
        if isinstance(error, PeerError):
            return error
        try:
            broken = isinstance(error, RuntimeError)  # torch's, of a collective that another rank did not finish
            self._await_failure(_ELSEWHERE_LIMIT_S if broken else 0.0 if self.is_first else _FIRST_WORD_S)
            if _TIMED_OUT in str(error):
                others = [rank for rank in range(self.world_size) if rank != self.rank]
                error = self._board.late(others, self._board.limit_s)
            mine = failure_of(error, self.rank)
            first = self._board.post(mine)
        except RankError:
            return error  # nobody can be told
        return error if first == mine else PeerError(first)

    def _await_failure(self, limit_s: float) -> None:
        until = time.monotonic() + limit_s
        while time.monotonic() < until and self._board.failure() is None:
            time.sleep(0.02)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """torch's errors of a collective in our words; a failure that was posted meanwhile is their cause."""
        self._begun += 1
        try:
            yield
            self._done += 1
        except RuntimeError as error:
            self._await_failure(_ELSEWHERE_LIMIT_S)
            failure = self._board.failure()
            if failure is not None:
                raise PeerError(failure) from error
            raise RankError(f"the connection to another rank broke in '{self._board.stage}': {error}") from error

    def _arrive(self) -> None:
        self._waiting = True
        self._board.arrive()
        self._waiting = False

    def _doing(self) -> str:
        """For a message about another rank."""
        return f"waited for it in '{self._board.stage}'" if self._waiting else f"was in '{self._board.stage}'"


def _backend(local_rank: int) -> str:
    """gloo for what lies in main memory, NCCL for what lies on a GPU."""
    gpu = gpu_of(local_rank)
    if gpu is None or not dist.is_nccl_available():
        return "gloo"
    torch.cuda.set_device(gpu)
    return "cpu:gloo,cuda:nccl"

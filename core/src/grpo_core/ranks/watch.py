"""A thread beside the loop of each rank: it sees others die, hears of the run's failure, and sees to it that this
process stops within seconds, even where its main thread is stuck in a collective that will never end. After a failure
it sees who dies before all have met once more.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from grpo_core.errors import RankError
from grpo_core.orphans import orphaned
from grpo_core.ranks.board import Board
from grpo_core.ranks.failure import Failure, PeerError
from grpo_core.ranks.lifeline import Lifeline
from grpo_core.ranks.store import KeyStore, death_key

__all__ = ["Watch"]

_TICK_S = 0.25
_GRACE_S = 5.0
"""For a main thread to hear of a failure."""
_INTERRUPTED = 130
_WORD_LIMIT_S = 1.0


class Watch:
    """Runs until `end`; `failure` is what stops the run, once it is known here."""

    def __init__(
        self, board: Board, store: KeyStore, lifeline: Lifeline, *, rank: int, doing: Callable[[], str]
    ) -> None:
        self.failure: Failure | None = None
        self._until_s: float | None = None
        self._later: list[Failure] = []
        self._board = board
        self._store = store
        self._lifeline = lifeline
        self._rank = rank
        self._doing = doing
        self._parent = os.getppid()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ranks-watch", daemon=True)
        self._thread.start()

    def allow(self, limit_s: float) -> None:
        """The main thread has heard of the failure, and gets so long, from now, for what it does next."""
        self._until_s = time.monotonic() + limit_s

    def end(self, limit_s: float) -> None:
        """Say goodbye, wait until rank 0 (on rank 0: everyone else) has said it too, and stop watching."""
        self._ended.set()
        self._thread.join()
        self._lifeline.say_goodbye()
        until = time.monotonic() + limit_s
        while self._lifeline.peers and time.monotonic() < until:
            self._lifeline.lost(_TICK_S)
        self._lifeline.close()

    def _run(self) -> None:
        while not self._ended.is_set() and self.failure is None:
            try:
                for rank in self._lifeline.lost(_TICK_S):
                    death = self._death(rank)
                    if self._board.post(death) != death:  # the run had failed before
                        self._later.append(death)
                self.failure = self._board.failure()
            except RankError as error:  # the store is gone, and with it whoever kept it
                self.failure = Failure(rank=self._rank, by=self._rank, message=error.message, hint=error.hint)
            if self.failure is None and self._orphaned():
                self.failure = Failure(
                    rank=self._rank, by=self._rank, message=f"the launcher of rank {self._rank} died"
                )
        if self.failure is not None and not self._ended.is_set():
            self._stop(self.failure)

    def _death(self, rank: int) -> Failure:
        """What is said about a rank whose connection ended; its launcher knows how, a moment later."""
        until = time.monotonic() + _WORD_LIMIT_S
        while not self._store.has([death_key(rank)]) and time.monotonic() < until:
            time.sleep(0.02)
        known = self._store.has([death_key(rank)])
        how = self._store.get(death_key(rank)) if known else "its connection ended"
        position = self._board.position(rank)
        where = "" if position is None else f" in '{position.stage}'"
        return Failure(
            rank=rank,
            by=self._rank,
            message=f"rank {rank} died{where} ({how}) while rank {self._rank} {self._doing()}",
            hint="a process that was killed left no message: was it out of memory (dmesg), or ended by hand? "
            "`grpoctl resume RUN` goes on from the last checkpoint, with as many processes as before",
        )

    def _orphaned(self) -> bool:
        """Whether the launcher that would end this process is gone."""
        return "TORCHELASTIC_RUN_ID" in os.environ and orphaned(self._parent)

    def _stop(self, failure: Failure) -> None:
        """Wake the main thread up; end the process when it does not come."""
        if self._until_s is None:
            _thread.interrupt_main(signal.SIGTERM)
        limit_s = time.monotonic() + _GRACE_S
        self._board.begin_again()
        again = False
        while not self._ended.is_set():
            if not again and self._fails_again():
                again = True
                self._until_s = min(self._until_s or limit_s, time.monotonic() + _GRACE_S)
            if time.monotonic() > (self._until_s or limit_s):
                if failure.by == self._rank and failure.exit_code != _INTERRUPTED:
                    print(f"error: {PeerError(failure)}", file=sys.stderr, flush=True)
                os._exit(failure.exit_code)

    def _fails_again(self) -> bool:
        """Look for a tick who dies; whether what ranks do together after the failure fails as well."""
        try:
            self._later += [self._death(rank) for rank in self._lifeline.lost(_TICK_S)]
            while self._later:
                self._board.post(self._later.pop(0))
            return self._board.failure() is not None or self._orphaned()
        except RankError:
            return False  # the store is gone: the main thread sees it too

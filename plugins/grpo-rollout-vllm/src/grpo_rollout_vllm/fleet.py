"""All servers of a run as one process sees them: which are there, which have the newest weights, who is asked next.

A server is READY, STALE (it is there, with other weights than the run's newest) or DOWN. Only a READY one is asked for
completions. A thread for each server looks after it all the time, so a server that was killed is noticed in any stage
of a step, and one that comes back has the newest weights before it is asked anything. Only rank 0 brings weights; the
other ranks see by a server's label of its weights when that is done.

Place in the flow: rollout → **fleet** → server.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from grpo_core.api import RolloutError
from grpo_rollout_vllm.connection import Unreachable
from grpo_rollout_vllm.server import About, Server

__all__ = ["Fleet", "Member", "State"]

_log = logging.getLogger(__name__)
_TICK_S = 1.0
_TELL_AFTER_S = 10.0
"""A wait for a server that is away is told of when it is as long as that."""

BringWeights = Callable[[Server, About], None]


class State(StrEnum):
    """Of a server."""

    READY = "ready"
    STALE = "stale"
    DOWN = "down"


@dataclass(slots=True, kw_only=True, eq=False)
class Member:
    """A server, and what is known of it. Changed under the fleet's lock."""

    server: Server
    """The server."""
    state: State = State.DOWN
    """What it is good for."""
    reason: str = "it has not been asked yet"
    """Why it is not READY, as a clause."""
    since: float = field(default_factory=time.monotonic)
    """When it became what it is."""
    about: About | None = None
    """What it said; None: it must be asked, as it is new or was away."""
    was_lost: bool = False
    """Whether it has been there, is away, and that has been said."""
    in_flight: int = 0
    """Prompts that this process has with it."""
    look: threading.Event = field(default_factory=threading.Event)
    """Set: its thread does not wait for the next look."""

    def described(self) -> str:
        """For a message."""
        return f"{self.server.url} is {self.state} since {time.monotonic() - self.since:.0f} s ({self.reason})"


class Fleet:
    """`who` is this process, for messages; `check` says whether a server fits the run."""

    def __init__(
        self,
        servers: Sequence[Server],
        *,
        check: Callable[[Server], About],
        who: str,
        offset: int,
        prompts_in_flight: int,
        wait_limit_s: float,
        look_interval_s: float,
    ) -> None:
        self._members = [Member(server=server) for server in servers]
        self._check = check
        self._who = who
        self._offset = offset
        self._prompts_in_flight = prompts_in_flight
        self._wait_limit_s = wait_limit_s
        self._look_interval_s = look_interval_s
        self._changed = threading.Condition()
        self._label: str | None = None
        self._bring: BringWeights | None = None
        self._fault: RolloutError | None = None
        self._told = False
        self._closed = False
        self._threads = [
            threading.Thread(target=self._look_after, args=(member,), name=f"watch {member.server.url}", daemon=True)
            for member in self._members
        ]
        for thread in self._threads:
            thread.start()

    def meet(self) -> Sequence[About]:
        """Wait for every server to be there, and to be one for this run; what they say."""
        self._await(lambda: all(member.about for member in self._members), "every vLLM server to be there")
        return [member.about for member in self._members if member.about]

    def expect(self, label: str, bring: BringWeights | None) -> None:
        """From now on the newest weights are those that servers call `label`; `bring` gets them there. None: another
        rank brings them. Returns when every server that is there has them, and one at least is."""
        with self._changed:
            self._label, self._bring = label, bring
            for member in self._members:
                if member.state is State.READY:
                    self._set(member, State.STALE, "it has the weights of before")
                member.look.set()
        self._await(self._settled, "a vLLM server with the newest weights")

    def disown(self) -> None:
        """Take from every server that is there the name of an adapter that an earlier process of the run gave it."""
        for member in self._members:
            with contextlib.suppress(Unreachable):
                member.server.disown()

    @contextmanager
    def member_for(self, what: str) -> Iterator[Member]:
        """The READY server with the fewest prompts, counted as having one more; `what` it is for."""
        member = self._pick(what)
        try:
            yield member
        finally:
            with self._changed:
                member.in_flight -= 1
                self._changed.notify_all()

    def lost(self, member: Member, reason: str) -> None:
        """A server did not answer: nobody asks it until it has been looked at."""
        with self._changed:
            self._set(member, State.DOWN, reason)
        member.look.set()

    def outdated(self, member: Member, label: str) -> None:
        """A server answered with other weights than the newest."""
        with self._changed:
            self._set(member, State.STALE, f"its weights are {label!r}, not {self._label!r}")
            member.about = None  # it may be a new process
        member.look.set()

    @property
    def smallest_context(self) -> tuple[int, str] | None:
        """The fewest tokens that a server takes, and its address."""
        known = [(member.about.context_tokens, member.server.url) for member in self._members if member.about]
        return min(known, default=None)

    def close(self) -> None:
        """Leave the servers as they are, and stop looking after them."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for member in self._members:
            member.look.set()
            member.server.abandon()
        for thread in self._threads:
            thread.join(timeout=5.0)

    def _pick(self, what: str) -> Member:
        count = len(self._members)
        found: list[Member] = []

        def free() -> bool:
            ready = [
                (member.in_flight, (index - self._offset) % count, member)
                for index, member in enumerate(self._members)
                if member.state is State.READY and member.in_flight < self._prompts_in_flight
            ]
            found[:] = [min(ready, key=lambda each: each[:2])[2]] if ready else []
            if found:
                found[0].in_flight += 1
            return bool(found)

        self._await(free, f"a vLLM server for {what}")
        return found[0]

    def _settled(self) -> bool:
        states = [member.state for member in self._members]
        return State.STALE not in states and State.READY in states

    def _await(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until `holds`, called under the lock; no longer than the limit without any server that works."""
        until = time.monotonic() + self._wait_limit_s
        with self._changed:
            while True:
                if self._fault is not None:
                    raise self._fault
                if self._closed:
                    raise RolloutError("the rollout backend is closed")
                if holds():
                    return
                if any(member.state is State.READY and member.in_flight for member in self._members):
                    until = time.monotonic() + self._wait_limit_s  # it waits for its turn, not for a server
                if time.monotonic() > until:
                    raise self._nobody(what)
                if time.monotonic() > until - self._wait_limit_s + _TELL_AFTER_S:
                    self._tell(what)
                self._changed.wait(_TICK_S)

    def _tell(self, what: str) -> None:
        """Say what is waited for, once: dozens of prompts wait for the same servers."""
        if not self._told and any(member.state is State.DOWN for member in self._members):
            self._told = True
            self._log("waits for %s, for up to %.0f s: %s", what, self._wait_limit_s, self._described())

    def _log(self, text: str, *values: object) -> None:
        """A line on the console; rank 0's speaks for all."""
        _log.log(logging.INFO if self._offset else logging.WARNING, f"%s {text}", self._who, *values)

    def _described(self) -> str:
        return "; ".join(member.described() for member in self._members)

    def _nobody(self, what: str) -> RolloutError:
        return RolloutError(
            f"{self._who} waited {self._wait_limit_s:.0f} s for {what}: {self._described()}",
            hint="start it, or start it again, with `grpoctl rollout --model … --port …`; the newest weights come to "
            "it by themselves. Its own output says why it ended. rollout.options.wait_limit_s is the limit",
        )

    def _look_after(self, member: Member) -> None:
        """The thread of one server."""
        while not self._closed:
            member.look.clear()
            try:
                self._look(member)
            except Unreachable as error:
                with self._changed:
                    self._down(member, str(error))
            except RolloutError as error:
                with self._changed:
                    self._fault = self._fault or error
                    self._changed.notify_all()
            member.look.wait(self._look_interval_s)

    def _look(self, member: Member) -> None:
        label = member.server.label()
        about = member.about or self._check(member.server)
        with self._changed:
            member.about = about
            wanted, bring = self._label, self._bring
            if wanted is not None and label != wanted:
                self._set(member, State.STALE, f"its weights are {label!r}, not {wanted!r}")
            self._changed.notify_all()
        if wanted is None:
            return
        if label != wanted:
            if bring is None:
                return
            bring(member.server, about)
        elif member.state is not State.READY and bring is not None:
            member.server.resume()  # whoever brought the weights may have ended before it said so
        with self._changed:
            if self._label == wanted:
                self._set(member, State.READY, "")
                if member.was_lost:
                    self._log("asks the vLLM server %s again: it has the newest weights", member.server.url)
                member.was_lost = self._told = False

    def _down(self, member: Member, reason: str) -> None:
        """It is not there: what waits for it goes elsewhere."""
        if member.about is not None and not self._closed:
            self._log("lost the vLLM server %s: %s", member.server.url, reason)
            member.was_lost = True
        self._set(member, State.DOWN, reason)
        member.about = None
        member.server.abandon()

    def _set(self, member: Member, state: State, reason: str) -> None:
        if state is not member.state:
            member.since = time.monotonic()
        member.state, member.reason = state, reason
        self._changed.notify_all()

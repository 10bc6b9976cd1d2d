"""Two runs that talk: a script's and a program's. The host carries lines from one to the other and looks into none.

Who has to speak next has the turn, and only that one's time runs. A line of the script that begins with a full stop is
its verdict.

Place in the flow: script job → local executor → **relay** → the two sandboxes.
"""

from __future__ import annotations

import selectors
import threading
import time
from dataclasses import dataclass

from grpo_rewards_code.executor.types import ExecutorError
from grpo_rewards_code.sandbox.exchange import LOOK_S, Finished, Run

__all__ = ["Talk", "relay"]

_MOST_LINES = 1_000_000
_LEAVING_S = 1.0
"""How long a program may take to end when nothing is asked of it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """How a talk went."""

    verdict: bytes | None
    """The script's last line, or None where it ended without."""
    answers: int
    """How often the program answered."""
    program: Finished
    script: Finished


def relay(
    program: Run,
    script: Run,
    *,
    turn_s: float,
    script_s: float,
    total_s: float,
    wanted: threading.Event,
    say_ended: str,
) -> Talk:
    """Run both to the end.

    Args:
        program: the run that is asked.
        script: the run that asks.
        turn_s: how long the program may take for one answer.
        script_s: how long the script may take by itself, altogether.
        total_s: how long both may take.
        wanted: cleared when nobody waits for the outcome any more.
        say_ended: what the script is told in the place of an answer that does not come.
    """
    with selectors.DefaultSelector() as selector:
        talk = _Talk(selector, program, script, say_ended)
        talk.go(turn_s, script_s, total_s, wanted)
    return Talk(verdict=talk.verdict, answers=talk.answers, program=program.finished(), script=script.finished())


class _Talk:
    def __init__(self, selector: selectors.BaseSelector, program: Run, script: Run, say_ended: str) -> None:
        self._selector = selector
        self._program, self._script = program, script
        self._say_ended = f"x{say_ended}\n".encode()
        self._asks = False
        """Whether the program has the turn."""
        self.verdict: bytes | None = None
        self.answers = 0
        self._lines = 0

    def go(self, turn_s: float, script_s: float, total_s: float, wanted: threading.Event) -> None:
        for run in (self._script, self._program):
            run.start(self._selector, first=True)
        started = before = turn_began = time.monotonic()
        script_took = 0.0
        while not self._script.is_over:
            self._wait()
            now = time.monotonic()
            script_took += 0.0 if self._asks else now - before
            lines = self._lines
            self._carry()
            turn_began = turn_began if self._lines == lines else now
            before = now
            if not wanted.is_set():
                raise ExecutorError("the job was cancelled")
            too_long = now - started > total_s or self._lines > _MOST_LINES
            if not self._program.is_over and (too_long or (self._asks and now - turn_began > turn_s)):
                self._program.stop("wall")
            if script_took > script_s:
                self._script.stop("wall")
        self._part()

    def _part(self) -> None:
        """Nothing will be asked any more."""
        self._program.hang_up(self._selector)
        until = time.monotonic() + _LEAVING_S
        while not self._program.is_over:
            self._wait()
            while self._program.heard() is not None:
                pass
            if time.monotonic() > until:
                self._program.stop("wall")

    def _wait(self) -> None:
        for key, _ in self._selector.select(LOOK_S):
            run, name = key.data
            run.step(self._selector, name, key.fd)

    def _carry(self) -> None:
        while True:
            if not self._asks:
                line = self._script.heard()
                if line is None:
                    return
                self._lines += 1
                if line.startswith(b"."):
                    self.verdict = line
                    return
                self._asks = True
                self._program.say(self._selector, line)
            line = self._program.heard()
            if line is not None:
                self.answers += 1
            elif self._program.is_over:
                line = self._say_ended
            else:
                return
            self._asks = False
            self._script.say(self._selector, line)

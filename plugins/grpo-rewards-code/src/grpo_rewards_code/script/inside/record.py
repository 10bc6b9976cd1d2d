"""What is known of a script's assertions while it runs, and the verdict in the end.

Place in the flow: run, marks → **record** → host.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from grpo_rewards_code.script.inside.peer import Ended, Peer
from grpo_rewards_code.script.inside.stubs import Unjudged

__all__ = ["Record"]


class Record:
    """Counts assertions; its methods are what marks call."""

    def __init__(self, peer: Peer, same: Callable[[Any, Any], Any]) -> None:
        self._peer = peer
        self._same = same
        self._held = 0
        self._failed = 0
        self._noted: BaseException | None = None
        self._is_raising = False
        self._reason = ""
        self._unjudged: str | None = None

    def marks(self) -> dict[str, Any]:
        """The functions that a marked script calls."""
        return {
            "_held_": self._assertion,
            "_same_": lambda one, other: self._same(one, other),
            "_is_": self._is,
            "_ran_": self._ran,
            "_looked_": self._looked,
            "_failed_": self.failed_now,
        }

    @property
    def is_over(self) -> bool:
        """Whether nothing that follows can matter: the program is gone, or there is no verdict."""
        return self._peer.ended is not None or self._unjudged is not None

    @property
    def has_failed(self) -> bool:
        return self._failed > 0

    def failed(self, error: BaseException) -> None:
        """An exception ended an assertion, or the script."""
        if error is self._noted or (self._is_raising and isinstance(error, AssertionError)):  # counted already
            self._is_raising = False
            return
        self._noted = error
        if isinstance(error, Unjudged):
            self._unjudged = self._unjudged or str(error)
        elif self._is_its_own(error):
            self._unjudged = self._unjudged or f"its test code fails by itself: {_said(error)}"
        self._fail(f"error: {error}" if isinstance(error, Ended) else _said(error))

    def _is_its_own(self, error: BaseException) -> bool:
        """Whether no program can be why the script raised something."""
        if isinstance(error, Ended) or hasattr(error, "of_program"):
            return False
        return self._peer.asked == 0 or isinstance(error, ImportError)

    def lacks(self, name: str) -> None:
        """The program does not define the only thing that the script can ask for."""
        if not self._failed:
            self._held = 0
            self._fail(f"error: NameError: name {name!r} is not defined")

    def failed_now(self) -> None:
        """The exception that is being handled ended an assertion."""
        import sys

        error = sys.exc_info()[1]
        assert error is not None
        self.failed(error)
        if isinstance(error, Unjudged):
            raise error

    def verdict(self, checks: int) -> str:
        """As JSON: how many assertions held, of how many, what failed first, and why there is no verdict."""
        ran = self._held + self._failed
        if self._peer.asked == 0 and self._unjudged is None:
            self._unjudged = "its test code has no assertion that calls the program"
        if self._peer.ended is not None and not self._failed:
            self._fail(f"error: {self._peer.ended}")
        if not ran and not self._failed:
            self._fail("no assertion ran")
        total = max(self._held + self._failed, checks if self._failed else 1)
        return json.dumps({"passed": self._held, "tests": total, "reason": self._reason, "none": self._unjudged})

    def _assertion(self, value: Any) -> bool:
        if value:
            self._held += 1
            return True
        self._fail("the assertion does not hold")
        self._is_raising = True
        return False

    def _fail(self, reason: str) -> None:
        self._failed += 1
        if not self._reason:
            self._reason = f"test {self._held + self._failed}: {reason}"[:500]

    @staticmethod
    def _is(one: Any, other: bool) -> bool:
        from grpo_rewards_code.script.inside.stubs import Said

        return bool(one) if isinstance(one, Said) else one is other

    def _ran(self, value: Any = None) -> Any:
        self._held += 1
        return value

    def _looked(self, value: Any) -> bool:
        found = bool(value)
        if not found:
            self._held += 1
        return found


def _said(error: BaseException) -> str:
    what = f"error: {type(error).__name__}: {error}".rstrip(": ")
    return "the assertion does not hold" if type(error) is AssertionError else what

"""Completions of the next step, drawn while the trainer updates with those of this one (`rollout.max_staleness` 1).

    draw 1 │ draw 2 with the weights of before ─┐ draw 3 …
           │ score 1, update 1                  ├ weights │ score 2, update 2 …

A step's completions are all there before the engine gets other weights, so every completion is of one version, and that
is one step behind at most. The importance correction weighs each token by the trainer's probability against the one it
was drawn with, which covers this as it covers the engine's numerics.

Nothing of it is saved: a resumed run draws its first step anew, with the weights that it has, and loses none.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grpo_core.errors import RolloutError
from grpo_core.loop.shares import Piece
from grpo_core.types import RolloutGroup, RolloutRequest

__all__ = ["Ahead", "Asked"]

_TICK_S = 0.5
"""How long a wait lasts before it looks whether the run is to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a step asks."""

    requests: Sequence[RolloutRequest]
    """Of all ranks."""
    mine: Mapping[Piece, RolloutRequest]
    """This rank's part of them."""
    data: Mapping[str, Any]
    """Where the data stands once they are taken, for a checkpoint."""


class Ahead:
    """Draws the completions of one step at a time, in a thread of its own."""

    def __init__(self, draw: Callable[[Sequence[RolloutRequest]], Sequence[RolloutGroup]]) -> None:
        self._draw = draw
        self._thread: threading.Thread | None = None
        self._step: int | None = None
        self._asked: Asked | None = None
        self._groups: Sequence[RolloutGroup] = ()
        self._error: Exception | None = None

    def has_begun(self, step: int) -> bool:
        """Whether the completions of a step are there or on their way."""
        return self._step == step

    def begin(self, step: int, asked: Asked) -> None:
        """Have them drawn with the weights that the engine has now."""
        self._step, self._asked, self._groups, self._error = step, asked, (), None
        self._thread = threading.Thread(target=self._run, args=(asked,), name=f"rollout of step {step}", daemon=True)
        self._thread.start()

    def settle(self, limit_s: float = math.inf) -> None:
        """Wait until nothing is being drawn, or for as long as the limit."""
        until = time.monotonic() + limit_s
        while self._thread is not None and self._thread.is_alive() and time.monotonic() < until:
            self._thread.join(_TICK_S)

    def take(self, step: int) -> tuple[Asked, Sequence[RolloutGroup]]:
        """What a step asked and all that was drawn for it; raises what the backend raised."""
        self.settle()
        if self._error is not None:
            raise self._error
        if self._step != step or self._asked is None:
            raise RolloutError(f"the completions of step {step} were never begun; those of {self._step} were")
        return self._asked, self._groups

    def _run(self, asked: Asked) -> None:
        try:
            self._groups = tuple(self._draw(list(asked.mine.values())))
        except Exception as error:  # noqa: BLE001  a backend's own; it is raised where it is waited for
            self._error = error

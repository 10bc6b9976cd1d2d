"""How the threads that torch computes with on a CPU wait for work.

By default they spin for long. Where other processes want the same cores (a reward's workers, another run), a spinning
thread holds up the one that it waits for, and a step takes many times as long. Sleeping at once costs a step with the
cores to itself a quarter of its time; a short spin costs nothing on either side: benchmarks/waiting.py.
"""

from __future__ import annotations

import os

__all__ = ["let_waiting_threads_sleep"]

_TURNS = "10000"


def let_waiting_threads_sleep() -> None:
    """Let them sleep after a short spin, unless the environment says how they wait. Call it before torch is imported,
    whose libgomp asks once."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", _TURNS)

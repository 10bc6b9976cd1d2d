"""How the threads that torch computes with on a CPU wait for work.

By default they spin. Where other processes want the same cores (a reward's workers, another run), a spinning thread
holds up the one that it waits for, and a step takes many times as long; see benchmarks/waiting.py.
"""

from __future__ import annotations

import os

__all__ = ["let_waiting_threads_sleep"]

_VARIABLE = "OMP_WAIT_POLICY"


def let_waiting_threads_sleep() -> None:
    """Let them sleep, unless the environment says how they wait. Call it before torch is imported, which asks once."""
    os.environ.setdefault(_VARIABLE, "PASSIVE")

"""How many threads torch computes with on a CPU. Sums are split among them, so their number decides the last bits of
every result: a resumed run has the number it began with, also on a machine with more or fewer cores.
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace

import torch

from grpo_core.loop.checkpoint import LoopState

__all__ = ["settle_threads"]

logger = logging.getLogger("grpo_core")

_VARIABLE = "OMP_NUM_THREADS"


def settle_threads(state: LoopState, *, processes: int) -> LoopState:
    """Compute with the threads of the run so far, unless `OMP_NUM_THREADS` says otherwise, which is warned of, or the
    run had another number of processes; gives the state with what holds from now on."""
    threads = torch.get_num_threads()
    if state.threads not in (0, threads) and state.processes == processes:
        if _VARIABLE in os.environ:
            message = (
                "%s is %d, and the run so far had %d: its numbers may differ in the last bits from those of a run "
            )
            logger.warning(f"{message}that was never stopped", _VARIABLE, threads, state.threads)
        else:
            threads = state.threads
    torch.set_num_threads(threads)  # in any case: some libraries take their own default for a mere suggestion
    return replace(state, threads=threads, processes=processes)

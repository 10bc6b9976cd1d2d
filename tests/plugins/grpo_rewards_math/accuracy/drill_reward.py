"""`math_reward` with two further answers: one that never comes back, and one that kills its process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence

from grpo_rewards_math.accuracy.reward import math_reward

__all__ = ["drill"]


def drill(completions: Sequence[str], solution: Sequence[object]) -> list[float | None]:
    """As `math_reward`, but for what the drill is about."""
    if "hang" in completions[0]:
        time.sleep(600)
    if "die" in completions[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return math_reward(completions, solution)

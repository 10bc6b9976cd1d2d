"""What ranks do in the tests of this folder; each function runs in every rank."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

from grpo_core.errors import RewardError
from grpo_core.ranks.ranks import Ranks


def talks(ranks: Ranks, folder: str) -> None:
    """Every kind of exchange once."""
    rank = ranks.rank
    with ranks.stage("talk"):
        said = {
            "gather": ranks.gather(f"from {rank}"),
            "collect": ranks.collect([rank] * rank),
            "from_first": ranks.from_first("plan" if ranks.is_first else None),
            "exchange": ranks.exchange([f"{rank} to {other}" * other for other in range(ranks.world_size)]),
        }
    (Path(folder) / f"{rank}.json").write_text(json.dumps(said))


def rank_one_fails(ranks: Ranks) -> None:
    with ranks.stage("score"):
        if ranks.rank == 1:
            raise RewardError("the reward is broken", hint="mend it")
        ranks.gather(None)


def all_fail_alike(ranks: Ranks) -> None:
    with ranks.stage("load"):
        raise RewardError("no column 'answer'")


def rank_one_dies(ranks: Ranks) -> None:
    with ranks.stage("rollout"):
        if ranks.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        ranks.gather(None)


def rank_zero_dies(ranks: Ranks) -> None:
    with ranks.stage("rollout"):
        if ranks.rank == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        ranks.gather(None)


def rank_one_is_blocked(ranks: Ranks) -> None:
    with ranks.stage("rollout"):
        if ranks.rank == 1:
            time.sleep(60)
    with ranks.stage("score"):
        ranks.gather(None)


def rank_one_dies_in_a_collective(ranks: Ranks) -> None:
    """Rank 0 is in a collective of its own, as in a backward pass."""
    with ranks.stage("update"):
        ranks.gather(None)
        if ranks.rank == 1:
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(torch.zeros(1))


def rank_one_is_blocked_in_a_collective(ranks: Ranks) -> None:
    with ranks.stage("update"):
        ranks.gather(None)
        if ranks.rank == 1:
            time.sleep(60)
        dist.all_reduce(torch.zeros(1))


def rank_one_fails_while_rank_zero_computes(ranks: Ranks) -> None:
    with ranks.stage("rollout"):
        if ranks.rank == 1:
            raise RewardError("the reward is broken")
        while True:  # no wait, and nothing that looks at the others
            sum(range(1000))


def stages_differ(ranks: Ranks) -> None:
    with ranks.stage(f"stage of {ranks.rank}"):
        ranks.gather(None)


def ends_at_different_times(ranks: Ranks) -> None:
    ranks.gather(None)
    if ranks.rank == 0:
        time.sleep(1.0)
    print("done", file=sys.stderr)

"""What ranks do in the tests of this folder; each function runs in every rank."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist

from grpo_core.errors import GrpoError, RankError, RewardError
from grpo_core.loop.interrupt import catch_interrupt
from grpo_core.ranks.failure import Word
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


def all_meet_after_a_failure(ranks: Ranks, folder: str) -> None:
    """Rank 0 waits where rank 1 never comes; then they say something to each other once more."""
    try:
        with ranks.stage("score"):
            if ranks.rank == 1:
                raise RewardError("the reward is broken")
            ranks.gather(None)
    except GrpoError as error:
        first = ranks.settle(error)
        with ranks.regroup(Word(step=3, version=3)) as words, ranks.stage("checkpoint"):
            said = ranks.gather(f"from {ranks.rank}")
        (Path(folder) / f"{ranks.rank}.json").write_text(json.dumps([len(set(words)), words[0].obstacle, said]))
        raise first from error


def regroups(ranks: Ranks, where: Callable[[], None]) -> None:
    """What `train` does: `where` fails, or is woken because another rank has failed."""
    with catch_interrupt(ranks) as interrupt:
        try:
            ranks.gather(None)
            where()
        except GrpoError as error:
            interrupt.begin_last()
            first = ranks.settle(error)
            started_s = time.monotonic()
            try:
                with ranks.regroup(Word(step=3)) as words:
                    print(f"met: {[word.obstacle for word in words]}", file=sys.stderr)
                    ranks.gather(None)
            except RankError as missing:
                print(f"not met after {time.monotonic() - started_s:.0f} s: {missing.message}", file=sys.stderr)
            raise first from error


def rank_one_dies_before_they_meet(ranks: Ranks) -> None:
    def where() -> None:
        if ranks.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        ranks.gather(None)

    regroups(ranks, where)


def rank_one_is_stuck_in_a_collective(ranks: Ranks) -> None:
    """Nothing wakes rank 1 up, which waits for a rank that failed."""

    def where() -> None:
        if ranks.rank == 0:
            raise RewardError("the reward is broken")
        dist.all_reduce(torch.zeros(1))

    regroups(ranks, where)


def rank_one_dies_while_they_save(ranks: Ranks) -> None:
    try:
        if ranks.rank == 1:
            raise RewardError("the reward is broken")
        ranks.gather(None)
    except GrpoError as error:
        first = ranks.settle(error)
        try:
            with ranks.regroup(Word(step=3)), ranks.stage("checkpoint"):
                if ranks.rank == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                ranks.gather(None)
        except RankError as second:
            print(f"second: {second.message}", file=sys.stderr)
        raise first from error


def an_exchange_is_cut_off(ranks: Ranks) -> None:
    """Rank 0 is stopped between two halves of what all ranks exchange."""
    try:
        ranks.gather(_Unreadable(ranks.rank))
        ranks.gather(None)
    except BaseException as error:
        first = ranks.settle(error)
        with ranks.regroup(Word(step=3)) as words:
            print(f"obstacles: {sorted({str(word.obstacle) for word in words})}", file=sys.stderr)
        raise first from error


class _Unreadable:
    """Breaks where it is unpacked, on rank 0 alone."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __setstate__(self, state: dict[str, int]) -> None:
        if os.environ["RANK"] == "0":
            raise RewardError("it cannot be read")

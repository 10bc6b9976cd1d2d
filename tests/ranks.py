"""Real processes as ranks, for tests: a function of a test module runs in each of them.

Example: `ran = run_ranks(2, "tests.core.ranks.scenes:gathers", tmp_path)`; the function gets the ranks and the rest.
"""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
LONG_S = 240.0
"""More than anything takes that ends well, on a machine that does much else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRan:
    """What one rank left."""

    returncode: int
    stdout: str
    stderr: str


def start_ranks(count: int, scene: str, *arguments: object, limit_s: float = 60.0) -> list[subprocess.Popen[str]]:
    """Start `scene`, `package.module:function`, as ranks that keep their store themselves, as srun's do."""
    port = free_port()
    return [
        subprocess.Popen(
            [sys.executable, "-m", "tests.ranks", scene, str(limit_s), *map(str, arguments)],
            cwd=ROOT,
            env=os.environ
            | {"RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(count)}
            | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
            | {"TORCH_CPP_LOG_LEVEL": "ERROR"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]


def end_ranks(processes: Sequence[subprocess.Popen[str]], timeout_s: float = LONG_S) -> list[RankRan]:
    """Wait for all of them."""
    ran = []
    try:
        for process in processes:
            stdout, stderr = process.communicate(timeout=timeout_s)
            ran.append(RankRan(returncode=process.returncode, stdout=stdout, stderr=stderr))
    finally:
        for process in processes:
            process.kill()
    return ran


def run_ranks(count: int, scene: str, *arguments: object, limit_s: float = LONG_S) -> list[RankRan]:
    """Run a scene to its end; it must end well on every rank."""
    ran = end_ranks(start_ranks(count, scene, *arguments, limit_s=limit_s))
    assert all(each.returncode == 0 for each in ran), ran
    return ran


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(scene: str, limit_s: str, *arguments: str) -> int:
    """One rank."""
    from grpo_core.errors import GrpoError
    from grpo_core.ranks.group import Opening, open_ranks
    from grpo_core.ranks.place import find_place

    module, _, name = scene.partition(":")
    function = getattr(importlib.import_module(module), name)
    try:
        opening = Opening(wait_limit_s=float(limit_s))
        with open_ranks(find_place(os.environ), lambda: opening) as (ranks, _):
            function(ranks, *arguments)
    except GrpoError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

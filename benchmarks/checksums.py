"""What the checksums of a checkpoint cost: GiB a second, for writing them and for verifying.

    python benchmarks/checksums.py --files 2 --mebibytes 512

Files of random bytes that were just written, so they are in memory, as those of a checkpoint are when it is written.
Prints the best of several turns. Files are hashed side by side: a checkpoint of the `torch` trainer has two large ones.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from grpo_core.loop.checksums import faults_of_files, write_sums


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2)
    parser.add_argument("--mebibytes", type=int, default=512, help="of each file")
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(args.files):
            (folder / f"weights-{number}").write_bytes(os.urandom(args.mebibytes << 20))
        gibibytes = args.files * args.mebibytes / 1024
        parts: dict[str, Callable[[], object]] = {
            "written": lambda: write_sums(folder),
            "verified": lambda: faults_of_files(folder),
        }
        for what, run in parts.items():
            seconds = min(elapsed_s(run) for _ in range(args.turns))
            print(f"{what:<10} {gibibytes / seconds:6.2f} GiB/s  ({gibibytes:.1f} GiB in {seconds:.2f} s)")


def elapsed_s(run: Callable[[], object]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()

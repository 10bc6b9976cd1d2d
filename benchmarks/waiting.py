"""How the threads of torch wait: seconds a step of the demo, with the machine to itself and beside busy processes.

    python benchmarks/waiting.py --busy 2 --steps 3 --turns 3

`spinning` is OpenMP's own default (300,000 turns of a loop, then sleep), `short spin` what grpoctl asks for. They
take turns; prints the median step of each and the medians of the turns' ratios to the last. Needs
grpo-rewards-math, and libgomp, which torch brings on Linux.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

WAYS: Mapping[str, Mapping[str, str]] = {
    "spinning": {"GOMP_SPINCOUNT": "300000"},
    "sleeping": {"OMP_WAIT_POLICY": "PASSIVE"},
    "short spin": {},
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, default=2, help="processes that only compute, in the second half")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    for busy in dict.fromkeys((0, args.busy)):
        with others(busy):
            turns = [{way: step_s(set_, args.steps) for way, set_ in WAYS.items()} for _ in range(args.turns)]
        medians = {way: statistics.median(turn[way] for turn in turns) for way in WAYS}
        ratio = statistics.median(turn["spinning"] / turn["sleeping"] for turn in turns)
        print(
            f"beside {busy} busy processes:", *(f"{way} {s:.2f} s/step," for way, s in medians.items()), f"{ratio:.2f}x"
        )


@contextmanager
def others(count: int) -> Iterator[None]:
    """Processes that want a core each."""
    started = [multiprocessing.Process(target=compute, daemon=True) for _ in range(count)]
    for process in started:
        process.start()
    yield
    for process in started:
        process.kill()


def compute() -> None:
    """For ever."""
    while True:
        sum(range(10_000))


def step_s(variables: Mapping[str, str], steps: int) -> float:
    """The median seconds of a step of one run."""
    with tempfile.TemporaryDirectory() as folder:
        small = ("--steps", str(steps), "--eval-rows", "32", "--output", "run")
        command = [sys.executable, "-m", "grpo_core", "train", "--recipe", "countdown-tiny", *small]
        environment = {**os.environ, **variables}
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        lines = Path(folder, "run", "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    steps_s = [json.loads(line).get("time/step_s") for line in lines]  # a line of evaluation alone has none
    return statistics.median(value for value in steps_s if value is not None)


if __name__ == "__main__":
    main()

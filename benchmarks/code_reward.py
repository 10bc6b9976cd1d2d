"""Programs per second with full isolation, against a plain `subprocess.run([python, file])` for each test.

    python benchmarks/code_reward.py [--programs 30] [--tests 10] [--rounds 5] [--isolation landlock] [--form assert]

`--form assert`: the tests of a program are one script of assertions, which here runs in a sandbox of its own.
Both sides judge the same programs on as many threads as there are cores, take turns in one run, and must agree.
Prints medians: other work on the machine slows both.
The plain side is what a reward without a sandbox does: a file, an interpreter for each test, a timeout, no isolation.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from grpo_rewards_code.compare import Tolerance
from grpo_rewards_code.executor.make import make_executor
from grpo_rewards_code.executor.options import ExecutorOptions
from grpo_rewards_code.executor.types import Executor, Job, Limits, StdinRun
from grpo_rewards_code.judge import judge
from grpo_rewards_code.problem.row import read_problem

PROGRAM = """
import sys
from collections import Counter

def solve(words):
    return Counter(words).most_common(1)[0][0]

if __name__ == "__main__":
    words = sys.stdin.read().split()
    print(solve(words), len(words), {number})
"""

FUNCTION = """
from collections import Counter

def solve(words):
    return Counter(words).most_common(1)[0][0], len(words), {number}
"""

Outputs = list[list[str]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=30)
    parser.add_argument("--tests", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--isolation", default="auto")
    parser.add_argument("--form", choices=("stdin", "assert"), default="stdin")
    arguments = parser.parse_args()
    source = PROGRAM if arguments.form == "stdin" else FUNCTION
    programs = [source.replace("{number}", str(number)) for number in range(arguments.programs)]
    inputs = [" ".join(["a", "b", "b"] * (1 + number)) for number in range(arguments.tests)]
    plain_of = {"stdin": _plain, "assert": _plain_assertions}
    judged = _sandboxed if arguments.form == "stdin" else _asked
    plain_s: list[float] = []
    sandbox_s: list[float] = []
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        executor = make_executor(ExecutorOptions.model_validate({"isolation": arguments.isolation}))
        print(executor.describe())
        for _ in range(arguments.rounds):
            plain = _timed(
                plain_s, lambda: list(threads.map(lambda each: plain_of[arguments.form](each, inputs), programs))
            )
            sandboxed = _timed(sandbox_s, lambda: asyncio.run(judged(executor, programs, inputs)))
            assert plain == sandboxed
        asyncio.run(executor.aclose())
    for name, turns in (("plain", plain_s), ("sandbox", sandbox_s)):
        print(f"{name:8} {len(programs) / statistics.median(turns):7.1f} programs/s of {len(inputs)} tests")
    ratios = [plain / sandbox for plain, sandbox in zip(plain_s, sandbox_s, strict=True)]
    print(f"ratio    {statistics.median(ratios):7.2f}   (turns: {', '.join(f'{each:.2f}' for each in ratios)})")


def _timed(turns: list[float], work: Callable[[], Outputs]) -> Outputs:
    started = time.perf_counter()
    outputs = work()
    turns.append(time.perf_counter() - started)
    return outputs


def _plain(program: str, inputs: Sequence[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "program.py"
        file.write_text(program, encoding="utf-8")
        return [
            subprocess.run([sys.executable, file], input=text, capture_output=True, text=True, timeout=10).stdout
            for text in inputs
        ]


def _plain_assertions(program: str, inputs: Sequence[str]) -> list[str]:
    """An interpreter for each assertion, as above."""
    scripts = [f"{program}\n{line}" for line in _assertions(program, inputs)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "program.py"
        codes = []
        for script in scripts:
            file.write_text(script, encoding="utf-8")
            codes.append(subprocess.run([sys.executable, file], capture_output=True, timeout=10).returncode)
    return [str(code == 0) for code in codes]


def _assertions(program: str, inputs: Sequence[str]) -> list[str]:
    number = program.rpartition(",")[2].strip()
    return [f"assert solve({text.split()!r}) == ('b', {len(text.split())}, {number})" for text in inputs]


async def _asked(executor: Executor, programs: Sequence[str], inputs: Sequence[str]) -> Outputs:
    rows = [read_problem({"test": "\n".join(_assertions(program, inputs))}) for program in programs]
    verdicts = await asyncio.gather(
        *(
            judge(program, row, executor, Limits(), tolerance=Tolerance())
            for program, row in zip(programs, rows, strict=True)
        )
    )
    return [[str(index < verdict.passed) for index in range(len(inputs))] for verdict in verdicts]


async def _sandboxed(executor: Executor, programs: Sequence[str], inputs: Sequence[str]) -> Outputs:
    runs = [StdinRun(stdin=text) for text in inputs]
    jobs = [executor.run(Job(program=program, runs=runs)) for program in programs]
    return [[result.stdout for result in results] for results in await asyncio.gather(*jobs)]


if __name__ == "__main__":
    main()

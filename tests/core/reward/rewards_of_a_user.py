"""Rewards as a user's file holds them, well and badly behaved; workers load them by path."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

CALLS: list[list[str]] = []


def length(completions):
    CALLS.append(list(completions))
    return [float(len(text)) for text in completions]


def as_told(completions, outcomes):
    """Each completion is an index into its own column."""
    return [told[int(text)] for text, told in zip(completions, outcomes, strict=True)]


def by_text(completions):
    """What the completion asks for: a number, or a misdeed."""
    return [_obey(text) for text in completions]


def _obey(text):
    word, _, argument = text.partition(" ")
    if word == "score":
        return float(argument)
    if word == "none":
        return None
    if word == "nan":
        return float("nan")
    if word == "raise":
        raise KeyError(argument)
    if word == "exit":
        sys.exit(int(argument))
    if word == "die":
        os._exit(137)
    if word == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if word == "kill-parent":
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    if word == "hang":
        time.sleep(3600)
    if word == "spin":  # in C code, holding the interpreter's lock: no exception can reach it
        re.match(r"(a+)+$", "a" * 40 + "b")
    if word == "ignore-signals":
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(3600)
    if word == "sleep":
        time.sleep(float(argument))
        return 1.0
    if word == "touch":
        Path(argument).touch()
        return 1.0
    if word == "noise":
        print("noise on stdout")
        os.write(1, b"\x00\x00\x00\x00 raw noise\n")
        print("noise on stderr", file=sys.stderr)
        return 1.0
    if word == "write-to-sockets":
        for number in range(3, 64):
            try:
                if stat.S_ISSOCK(os.fstat(number).st_mode):
                    os.write(number, (12).to_bytes(8, "big") + b"not json but")
            except OSError:
                continue
        time.sleep(3600)
    if word == "die-later":
        threading.Timer(0.7, os._exit, [9]).start()
        return 1.0
    if word == "spawn":
        child = subprocess.Popen(["sleep", "3600"])
        Path(argument).write_text(str(child.pid))
        time.sleep(3600)
    raise ValueError(f"no such order: {text}")


def process_facts(completions, record):
    record("pid", [os.getpid() for _ in completions])
    record("parent", os.getppid())
    record("torch", "torch" in sys.modules)
    return [1.0] * len(completions)


def records(completions, solution, record):
    record("parsed", [text.upper() for text in completions])
    record("all", {"n": len(completions)})
    return [float(text == wanted) for text, wanted in zip(completions, solution, strict=True)]


def records_wrongly(completions, record):
    record("parsed", [1, 2, 3])
    return [1.0] * len(completions)


def records_objects(completions, record):
    record("odd", [object()])
    return [1.0]


def records_a_cycle(completions, record):
    cycle: list = []
    cycle.append(cycle)
    record("cycle", {"it": cycle})
    return [1.0]


async def slowly(completions):
    await asyncio.sleep(0.2)
    return [1.0, None, 0.0][: len(completions)]


async def never(completions):
    await asyncio.sleep(3600)


async def blocks(completions):
    time.sleep(3.0)
    return [1.0] * len(completions)


async def raises_later(completions):
    await asyncio.sleep(0)
    raise TimeoutError("the judge did not answer")


def too_slow(completions):
    time.sleep(0.2)
    return [1.0] * len(completions)


def rank_in_group(completions):
    ranked = sorted(completions)
    return [float(ranked.index(text)) for text in completions]


def count_of_step(completions):
    return [float(len(completions))] * len(completions)


def state(completions, trainer_state):
    return [trainer_state.global_step + trainer_state.max_steps / 100 + trainer_state.epoch / 1000 for _ in completions]


def solves(completions, solution):
    return [float(text == wanted) for text, wanted in zip(completions, solution, strict=True)]


def optional(completions, hint=None):
    return [0.0 if hint is None else 1.0] * len(completions)


def by_position(completions, /):
    return [0.0]


def by_star(*columns):
    return [0.0]


class NotAFunction:
    def __call__(self, completions):
        return [1.0] * len(completions)


callable_object = NotAFunction()
not_callable = 3


class AsyncObject:
    async def __call__(self, completions):
        return [0.5] * len(completions)


async_object = AsyncObject()


class Unpicklable:
    """A column value that can be sent to a worker and not be read there."""

    def __reduce__(self):
        return (_only_in_process, (os.getpid(),))


def _only_in_process(pid):
    if os.getpid() != pid:
        raise RuntimeError("made for another process")
    return Unpicklable()


def crashing_factory(options, context):
    os._exit(7)


def failing_factory(options, context):
    if context.rank == 1:
        raise OSError("no such table")
    return length

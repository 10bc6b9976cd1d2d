"""The worker: a process that a zygote forked, which answers one question at a time until its line closes.

It is killed, never asked to stop: a reward may hang in C code that no exception reaches.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import socket
import time
from collections.abc import Callable
from typing import Any, cast

from grpo_core.errors import GrpoError
from grpo_core.orphans import die_with_parent, go_first
from grpo_core.plugins.faults import describe
from grpo_core.plugins.targets import build_target
from grpo_core.reward.call import CallResult, await_call, call, failed_call, is_async
from grpo_core.reward.wire import Nursery, Question, WorkerTarget, encode_result, read_frame, write_frame
from grpo_core.types import BuildContext

__all__ = ["live", "started_at", "started_frame"]

Function = Callable[..., Any]
Prepared = tuple[Function, dict[str, object]]


def live(line: socket.socket, nursery: Nursery, parent: int) -> None:
    """Be a worker on `line`: all that a forked process does. `parent` is the zygote's process id."""
    os.setsid()  # a process group of its own: what the reward starts is killed with it, and Ctrl-C does not reach it
    die_with_parent(parent)
    go_first()
    functions: dict[str, Function] = {}
    while (frame := read_frame(line)) is not None:
        question: Question = pickle.loads(frame)
        prepared = _prepare(question, nursery, functions)
        began = time.monotonic()
        write_frame(line, started_frame(began))
        result = prepared if isinstance(prepared, CallResult) else _call(*prepared, question)
        write_frame(line, _encoded(result, time.monotonic() - began))


def started_frame(moment: float) -> bytes:
    """Says that the function is called now, by the clock that all processes of a machine share."""
    return json.dumps({"started": moment}).encode()


def started_at(frame: bytes) -> float:
    """The moment in a started frame: budgets are measured from it."""
    moment: float = json.loads(frame)["started"]
    return moment


def _prepare(question: Question, nursery: Nursery, functions: dict[str, Function]) -> Prepared | CallResult:
    """Unpack the arguments, and build the function on first use: neither counts against an answer's budget."""
    try:
        if question.reward not in functions:
            functions[question.reward] = _build(nursery.targets[question.reward], nursery.context)
        arguments: dict[str, object] = pickle.loads(question.arguments)
    except Exception as error:  # noqa: BLE001 - runs a factory, and the code of whatever package made a column
        reason = error.message if isinstance(error, GrpoError) else f"cannot be called in a worker: {describe(error)}"
        return failed_call(reason, question.count)
    return functions[question.reward], arguments


def _build(target: WorkerTarget, context: BuildContext) -> Function:
    return cast(Function, build_target(target.target, target.options_model, target.options, context))


def _call(function: Function, arguments: dict[str, object], question: Question) -> CallResult:
    if is_async(function):
        return asyncio.run(await_call(function, arguments, count=question.count, records=question.records))
    return call(function, arguments, count=question.count, records=question.records)


def _encoded(result: CallResult, elapsed_s: float) -> bytes:
    try:
        return encode_result(result, elapsed_s)
    except Exception as error:  # noqa: BLE001 - takes the repr of whatever was recorded
        reason = f"recorded values that have no JSON form: {describe(error)}"
        return encode_result(failed_call(reason, len(result.outcomes)), elapsed_s)

"""Executing a program in this process, as a script or for the value of a call.

The task comes from one descriptor and the result goes to another. Neither holds anything that the program must not
know: there is no expected answer here, and nothing that the program does to this module tells it one. Also sent to
remote services, so it needs nothing but the standard library of Python 3.8, and `values`.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import sys
import threading
import traceback
import types
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, NoReturn

from grpo_rewards_code.executor.values import TooLargeError, decode, encode

__all__ = ["as_module", "execute", "open_streams", "print_error", "read_task", "run"]

_CHUNK_BYTES = 1 << 16
_FILE_NAME = "/tmp/main.py"  # shown in tracebacks; there is no such file
_exit: Callable[[int], NoReturn] = os._exit
_write = os.write


def read_task(file: BinaryIO) -> Mapping[str, Any]:
    """What is to be done: the first line."""
    task: Mapping[str, Any] = json.loads(file.readline())
    return task


def run(work: Mapping[str, Any], result: int, largest_bytes: int) -> NoReturn:
    """Do a task, write the result, end the process with the exit code that an interpreter would."""
    open_streams()
    gc.enable()
    outcome, code = execute(work, largest_bytes)
    _send(result, json.dumps(outcome).encode())
    _exit(code)


def execute(work: Mapping[str, Any], largest_bytes: int) -> tuple[Mapping[str, str], int]:
    """Do a task: what to say of it, and the exit code.

    The outcome's `end` is `ok`, `error`, `memory` or `output`; with `value` the encoded result of a call.
    """
    if hasattr(sys, "set_int_max_str_digits"):  # not in the older interpreters of some services
        sys.set_int_max_str_digits(0)  # a program may print an integer of any length
    value = None
    try:
        try:
            value = _do(work, largest_bytes)
        except SystemExit as error:
            code = _exit_code(error.code)
            return {"end": "ok" if code == 0 else "error"}, code or _finish()
        if value is None:
            return {"end": "ok"}, _finish()
        sys.stdout.flush()  # the question is answered: exit handlers and waiting threads have nothing to add
        return {"end": "ok", "value": value}, 0
    except MemoryError:
        return {"end": "memory"}, 1
    except TooLargeError:
        return {"end": "output"}, 1
    except BaseException as error:  # noqa: BLE001  it is the program's, whatever it is
        print_error(error)
        return {"end": "error"}, 1


def _do(work: Mapping[str, Any], largest_bytes: int) -> str | None:
    kind = work["kind"]
    module = as_module(work["program"], "__main__" if kind == "stdin" else "solution")
    if kind == "stdin":
        return None
    function = _find(module, work["function"])
    return encode(function(*decode(work["arguments"])), largest_bytes)


def as_module(source: str, name: str) -> types.ModuleType:
    """Execute a program as a module of a name."""
    module = types.ModuleType(name)
    module.__dict__["__file__"] = _FILE_NAME
    sys.modules[name] = module
    sys.argv = [_FILE_NAME]
    exec(compile(source, _FILE_NAME, "exec", dont_inherit=True), module.__dict__)  # noqa: S102  what a sandbox is for
    return module


def _find(module: types.ModuleType, name: str) -> Callable[..., object]:
    """A function of the program, or a method of its class `Solution`."""
    names = module.__dict__
    if callable(names.get(name)):
        return names[name]  # type: ignore[no-any-return]
    solution = names.get("Solution")
    if solution is not None and hasattr(solution, name):
        return getattr(solution(), name)  # type: ignore[no-any-return]
    raise NameError(f"the program defines neither a function {name!r} nor a method of that name in a class Solution")


def _finish() -> int:
    """What an interpreter does at its end; the exit code."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads that are no daemons
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.__stdout__):  # the program may have put another in its place
        try:
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
        except (OSError, ValueError, AttributeError):
            return 120
    return 0


def _exit_code(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def print_error(error: BaseException) -> None:
    """Say what a program raised, as an interpreter does."""
    try:
        sys.stdout.flush()
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename.startswith(f"<{__package__}"):
            frames = frames.tb_next  # what is left is the program's own
        traceback.print_exception(type(error), error, frames, limit=-10)
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001  the program closed or replaced its streams: nobody wants to read it then
        return


def open_streams() -> None:
    """Make the standard streams anew, of the descriptors of this process."""
    sys.stdin = sys.__stdin__ = _stream(0, "rb", "surrogateescape")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(1, "wb", "surrogateescape")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2, "wb", "backslashreplace")  # type: ignore[misc]


def _stream(descriptor: int, mode: str, errors: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(open(descriptor, mode), "utf-8", errors, line_buffering=descriptor == 2)


def _send(result: int, data: bytes) -> None:
    for start in range(0, len(data), _CHUNK_BYTES):
        chunk = data[start : start + _CHUNK_BYTES]
        while chunk:
            chunk = chunk[_write(result, chunk) :]

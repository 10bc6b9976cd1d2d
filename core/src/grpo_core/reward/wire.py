"""Messages between the trainer, the zygote and the workers: frames over a socket, and what a worker is asked.

Towards workers a message is pickled plain values; back from them it is JSON, so that nothing a worker sends can run
code in the trainer.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grpo_core.reward.call import CallResult
from grpo_core.types import BuildContext, Failed, Outcome

__all__ = [
    "ANSWER",
    "END",
    "FORK",
    "ORDER",
    "Nursery",
    "Question",
    "WorkerTarget",
    "decode_result",
    "encode_result",
    "read_exactly",
    "read_frame",
    "write_frame",
]

FORK, END = b"F", b"E"
"""Orders to the zygote: fork a worker (one end of its socket comes along), or end one and say how it ended."""
ORDER = struct.Struct("!cQ")
"""An order: its kind, and for `END` the worker's process id."""
ANSWER = struct.Struct("!q")
"""The zygote's answer: the new worker's process id, or the wait status of the ended one."""

_LENGTH = struct.Struct("!Q")
_MAX_FRAME_BYTES = 1 << 30  # a longer frame is noise on the line, not a message


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTarget:
    """A reward by reference; a function from a file cannot be pickled."""

    target: str
    """`pkg.mod:attr` or `/absolute/file.py:attr`."""
    options_model: str | None
    """`pkg.options:Model`, or None."""
    options: Mapping[str, Any]
    """Validated options, as JSON values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nursery:
    """The first message to a zygote: all it needs to make workers."""

    targets: Mapping[str, WorkerTarget]
    """Reward name -> what workers can be asked to call."""
    context: BuildContext
    """For factories."""
    import_path: tuple[str, ...]
    """The trainer's `sys.path`, so that the same names lead to the same modules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a worker is asked: one call."""

    reward: str
    """Which of the nursery's rewards."""
    arguments: bytes
    """Parameter name -> argument, pickled by itself: what a column holds may not unpickle over there."""
    count: int
    """How many completions."""
    records: bool
    """Whether the function takes `record`."""


def write_frame(line: socket.socket, payload: bytes, until: float | None = None) -> None:
    """Send one message; raises OSError when the other side is gone, TimeoutError when it does not read until then."""
    line.settimeout(_remaining_s(until))
    line.sendall(_LENGTH.pack(len(payload)) + payload)


def read_frame(line: socket.socket, until: float | None = None) -> bytes | None:
    """Wait for one message; None when the other side is gone.

    `until` is a time of `time.monotonic()`; raises TimeoutError when the message is not complete by then, after a last
    look at what has arrived already.
    """
    head = read_exactly(line, _LENGTH.size, until)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    return read_exactly(line, length, until) if length <= _MAX_FRAME_BYTES else None


def read_exactly(line: socket.socket, size: int, until: float | None = None) -> bytes | None:
    """Wait for `size` bytes, as `read_frame` waits for a message."""
    chunks = bytearray()
    while len(chunks) < size:
        line.settimeout(_remaining_s(until))
        try:
            chunk = line.recv(min(size - len(chunks), 1 << 20))
        except ConnectionError:
            return None
        if not chunk:
            return None
        chunks += chunk
    return bytes(chunks)


def _remaining_s(until: float | None) -> float | None:
    """Never zero, which would mean "do not wait at all": what has arrived already is still read."""
    return None if until is None else max(until - time.monotonic(), 1e-3)


def encode_result(result: CallResult, elapsed_s: float) -> bytes:
    """A worker's answer. Recorded values become JSON values; what has no JSON form becomes its repr."""
    outcomes = [{"failed": o.reason} if isinstance(o, Failed) else o for o in result.outcomes]
    return json.dumps(
        {"outcomes": outcomes, "records": {k: list(v) for k, v in result.records.items()}, "elapsed_s": elapsed_s},
        default=repr,
    ).encode()


def decode_result(frame: bytes) -> tuple[CallResult, float]:
    """The result and how long the call took, in seconds."""
    message = json.loads(frame)
    outcomes: tuple[Outcome, ...] = tuple(
        Failed(outcome["failed"]) if isinstance(outcome, dict) else outcome for outcome in message["outcomes"]
    )
    records = {name: tuple(values) for name, values in message["records"].items()}
    return CallResult(outcomes=outcomes, records=records), message["elapsed_s"]

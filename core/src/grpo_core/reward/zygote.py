"""The zygote: a process that imports what the rewards need, and then only forks workers and ends them.

Started as `python -m grpo_core.reward.zygote FD PARENT`, so the trainer itself, with its threads and its accelerator,
is never forked. It imports no torch, no transformers and no datasets; a fork of it costs milliseconds. It does nothing
else, so that nothing else can go wrong here: rewards run in the workers, and the trainer talks to each worker directly.

When the trainer is gone, for whatever reason, it kills all workers and ends.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import select
import signal
import socket
import sys
import traceback
from contextlib import suppress

from grpo_core.errors import GrpoError
from grpo_core.orphans import die_with_parent, orphaned, part_from_parent
from grpo_core.plugins.targets import load_target
from grpo_core.reward.wire import ANSWER, END, FORK, ORDER, Nursery, read_exactly, read_frame, write_frame
from grpo_core.reward.worker import live

__all__ = ["main"]

_PARENT_CHECK_S = 1.0


def main(control_fd: int, parent: int) -> None:
    """Prepare once, then carry out orders until the control line closes or the parent is gone."""
    die_with_parent(parent)  # what rewards import may take minutes
    control = socket.socket(fileno=control_fd)
    frame = read_frame(control)
    if frame is None:
        return
    nursery: Nursery = pickle.loads(frame)
    sys.path[:] = nursery.import_path
    write_frame(control, json.dumps({"error": _preload(nursery)}).encode())
    part_from_parent()  # from now on its end is in order: workers, and what they started, go first
    gc.collect()
    gc.freeze()  # a collection in a worker would touch, and so copy, every page it shares with its siblings
    workers: set[int] = set()
    try:
        while _wait_for_order(control, parent):
            if not _obey(control, nursery, workers):
                break
    finally:
        for pid in list(workers):
            _end(pid)


def _preload(nursery: Nursery) -> str | None:
    """Import every target, and factories' options; the error of the first that cannot be. Building is the workers'."""
    for target in nursery.targets.values():
        for text in (target.target, target.options_model):
            try:
                if text is not None:
                    load_target(text)
            except GrpoError as error:
                return error.message
    return None


def _wait_for_order(control: socket.socket, parent: int) -> bool:
    """Whether there is something to read. A descriptor that somebody inherited keeps the line open after the parent's
    death, hence the look at the parent."""
    while not select.select([control], [], [], _PARENT_CHECK_S)[0]:
        if orphaned(parent):
            return False
    return True


def _obey(control: socket.socket, nursery: Nursery, workers: set[int]) -> bool:
    """Carry out one order; False when the line has closed."""
    head, descriptors, _flags, _address = socket.recv_fds(control, ORDER.size, 1)
    rest = read_exactly(control, ORDER.size - len(head)) if head else None
    if rest is None:
        return False
    kind, pid = ORDER.unpack(head + rest)
    if kind == FORK:
        answer = _fork(control, socket.socket(fileno=descriptors[0]), nursery)
        workers.add(answer)
    elif kind == END and pid in workers:
        workers.discard(pid)
        answer = _end(pid)
    else:
        return False
    control.sendall(ANSWER.pack(answer))
    return True


def _fork(control: socket.socket, line: socket.socket, nursery: Nursery) -> int:
    zygote = os.getpid()
    pid = os.fork()
    if pid:
        line.close()  # the worker's alone now: its death closes the line
        return pid
    code = 1
    try:
        control.close()
        live(line, nursery, zygote)
        code = 0
    except OSError:
        pass  # the trainer closed the line in the middle of an answer
    except BaseException:  # noqa: BLE001 - whatever it was, the process ends here, or it went on as a second zygote
        traceback.print_exc()
    finally:
        os._exit(code)


def _end(pid: int) -> int:
    """Kill a worker and all of its process group, and reap it; its wait status. It cannot have been reaped before, so
    the id is still its own."""
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), int(sys.argv[2]))
    except BaseException:  # noqa: BLE001 - whatever it was, the process ends here
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # whatever threads a reward's module has started

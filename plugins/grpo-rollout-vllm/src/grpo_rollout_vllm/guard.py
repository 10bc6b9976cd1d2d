"""What ends a server when `grpoctl rollout` has died without doing so: a process of its own that waits for that.

    python -m grpo_rollout_vllm.guard FD

FD is the reading end of a pipe. `grpoctl rollout` writes the number of the server's process group to it, and `done`
when it has ended the server; the pipe closes when it dies. vLLM's front process hears of that from the kernel, but its
engines, and whatever it had not got so far as to end, would stay and keep their memory.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

__all__ = ["Guard", "end_group"]

_DONE = b"done\n"
_GRACE_S = 20.0
_TICK_S = 0.1


class Guard:
    """The guard's process, from the side of `grpoctl rollout`."""

    def __init__(self) -> None:
        """Start it; it does nothing before it is told of a group."""
        theirs, self._pipe = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "grpo_rollout_vllm.guard", str(theirs)],
                pass_fds=[theirs],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is not for it
            )
        finally:
            os.close(theirs)

    def watch(self, group: int) -> None:
        """End this process group when this process is gone."""
        os.write(self._pipe, f"{group}\n".encode())

    def close(self) -> None:
        """There is nothing left to end."""
        with contextlib.suppress(BrokenPipeError):  # somebody killed it
            os.write(self._pipe, _DONE)
        os.close(self._pipe)
        self._process.wait()


def end_group(group: int, look: Callable[[], object] = lambda: None) -> None:
    """Ask a process group to end, and kill what is left of it after a while: its members get a moment to remove what
    they share in memory. `look` collects a child that has ended, which counts until then."""
    _signal(group, signal.SIGTERM)
    until = time.monotonic() + _GRACE_S
    while time.monotonic() < until:
        look()
        if not _signal(group, 0):
            return
        time.sleep(_TICK_S)
    _signal(group, signal.SIGKILL)


def _signal(group: int, number: int) -> bool:
    """Whether there was anyone to send it to."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)
        return True
    return False


def main(pipe: int) -> None:
    """Wait for the end of whoever has the other end."""
    with os.fdopen(pipe, "rb") as told:
        lines = told.readlines()
    if lines and _DONE not in lines:
        end_group(int(lines[0]))


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""The way into a sandbox: the first thing that a bare interpreter on the host runs.

Gives up privileges, then becomes bubblewrap, which starts another interpreter within its namespaces; or, where there
are no namespaces, becomes the zygote itself.

Place in the flow: host → **enter** → (bubblewrap →) zygote → program.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from grpo_rewards_code.sandbox.inside.kernel import set_no_new_privileges
from grpo_rewards_code.sandbox.inside.privileges import become, hold_open, reveal

__all__ = ["main"]

_STACK_BYTES = 64 << 20
"""Of a main thread. Takes effect at the next `execve`: the kernel lays out memory for it then."""
_LARGEST_MESSAGE = 1 << 20


def main(line: socket.socket, configuration: Mapping[str, Any]) -> None:
    """Enter; does not return."""
    command = configuration["command"]
    held = _give_up_privileges(configuration["user"], configuration["reveal"], may_hold=command is None)
    os.umask(0o022)
    os.chdir("/")
    _raise_stack()
    if command is not None:
        os.set_inheritable(line.fileno(), True)
        os.execve(command[0], [*command, str(line.fileno())], {})
    serving = json.loads(line.recv(_LARGEST_MESSAGE))["configuration"]
    if held:
        serving["readable"] = [held.get(path, path) for path in serving["readable"]]
        sys.path[:] = [_renamed(path, held) for path in sys.path]
        sys.path_importer_cache.clear()
    from grpo_rewards_code.sandbox.inside import zygote  # what becomes bubblewrap does without its modules

    zygote.main(line, serving)


def _give_up_privileges(user: int | None, needed: Sequence[str], *, may_hold: bool) -> dict[str, str]:
    """Become another user who can read what is needed; names for what only its descriptor still leads to."""
    held: dict[str, str] = {}
    if user is None:
        set_no_new_privileges()
        return held
    try:
        reveal(needed)
    except OSError:
        if not may_hold:
            raise
        held = hold_open(needed)
    become(user, user)
    return held


def _renamed(path: str, held: Mapping[str, str]) -> str:
    for place, name in held.items():
        if path == place or path.startswith(f"{place}/"):
            return name + path[len(place) :]
    return path


def _raise_stack() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    bytes_ = _STACK_BYTES if hard == resource.RLIM_INFINITY else min(_STACK_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (bytes_, hard))

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
from collections.abc import Mapping
from typing import Any

from grpo_rewards_code.sandbox.inside import zygote
from grpo_rewards_code.sandbox.inside.kernel import set_no_new_privileges
from grpo_rewards_code.sandbox.inside.privileges import become, reveal

__all__ = ["main"]

_STACK_BYTES = 64 << 20
"""Of a main thread. Takes effect at the next `execve`: the kernel lays out memory for it then."""
_LARGEST_MESSAGE = 1 << 20


def main(line: socket.socket, configuration: Mapping[str, Any]) -> None:
    """Enter; does not return."""
    user = configuration["user"]
    if user is None:
        set_no_new_privileges()
    else:
        reveal(configuration["reveal"])
        become(user, user)
    os.umask(0o022)
    os.chdir("/")
    _raise_stack()
    command = configuration["command"]
    if command is not None:
        os.set_inheritable(line.fileno(), True)
        os.execve(command[0], [*command, str(line.fileno())], {})
    zygote.main(line, json.loads(line.recv(_LARGEST_MESSAGE))["configuration"])


def _raise_stack() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    bytes_ = _STACK_BYTES if hard == resource.RLIM_INFINITY else min(_STACK_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (bytes_, hard))

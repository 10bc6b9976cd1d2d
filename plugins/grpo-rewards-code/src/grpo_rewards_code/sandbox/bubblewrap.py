"""The command line of bubblewrap: new namespaces of every kind, an empty root, and in it an interpreter's own files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from grpo_rewards_code.sandbox.layout import Layout

__all__ = ["Mode", "command"]

Mode = Literal["nested", "single", "alone"]
"""How runs are kept apart. `nested`: a job's have fresh namespaces within those of a sandbox. `single`: each has its
own sandbox. `alone`: each is a process without namespaces, under Landlock and seccomp."""

_USER = "1000"
_FOLDER_BYTES = str(64 << 20)


def command(bubblewrap: str, layout: Layout, mode: Mode, python: Sequence[str]) -> list[str]:
    """The command that runs an interpreter (`python`: the command line that starts it) in a sandbox."""
    arguments = [bubblewrap, "--unshare-user", "--uid", _USER, "--gid", _USER]
    arguments += ["--unshare-pid", "--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    # Without a process of bubblewrap in between: the first process of the namespace cannot be killed from inside.
    arguments += ["--hostname", "sandbox", "--new-session", "--as-pid-1", "--clearenv"]
    for name, value in environment().items():
        arguments += ["--setenv", name, value]
    for place, target in layout.links:
        arguments += ["--symlink", target, place]
    for path in layout.paths:
        arguments += ["--ro-bind", path, path]
    arguments += ["--proc", "/proc", "--dev", "/dev", "--dir", "/tmp"]
    if mode == "single":
        for folder in ("/tmp", "/dev/shm"):
            arguments += ["--perms", "0700", "--size", _FOLDER_BYTES, "--tmpfs", folder]
    arguments += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]
    return [*arguments, "--", *python]


def environment() -> dict[str, str]:
    """All that a program finds in its environment."""
    return {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/tmp", "LANG": "C.UTF-8", "TZ": "UTC"}

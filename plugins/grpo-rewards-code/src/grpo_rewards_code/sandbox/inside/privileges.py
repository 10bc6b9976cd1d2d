"""From root to an ordinary user, for good, before anything untrusted starts.

A limit on processes does not bind root, not even in a user namespace whose root it is, so a sandbox that root starts
is not root's. The interpreter may lie where only root can go (below `/root`). It is then shown at the same place in a
mount namespace of this process's own, with everything beside it covered; or, where mounting is refused, its folders are
held open, and reached by their descriptors.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Collection, Sequence
from pathlib import Path

from grpo_rewards_code.sandbox.inside.kernel import (
    CLONE_NEWNS,
    bind,
    make_private,
    mount,
    set_no_new_privileges,
    unshare,
)

__all__ = ["barrier", "become", "hold_open", "reveal"]

_KEPT = 512
"""Descriptors from here on are not closed before a program starts."""


def become(uid: int, gid: int) -> None:
    """Be another user and nothing more: no groups, no capabilities, and no way to gain any."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    set_no_new_privileges()


def reveal(paths: Sequence[str]) -> None:
    """Make files and folders readable that lie beyond folders which only their owner may enter; needs root.

    Raises:
        OSError: this root may not mount (a container without CAP_SYS_ADMIN).
    """
    hidden = {path: place for path in paths if (place := barrier(path)) is not None}
    if not hidden:
        return
    unshare(CLONE_NEWNS)
    make_private()
    # Opened before they are covered; a folder of another mount namespace could not be bound.
    opened = {path: os.open(path, os.O_PATH) for path in hidden}
    for place in sorted({place for place in hidden.values() if not _lies_in(place, set(hidden.values()))}):
        mount("tmpfs", place, "mode=0755,size=1m")
    for path, descriptor in opened.items():
        _place_for(path, descriptor)
        bind(f"/proc/self/fd/{descriptor}", path)
        os.close(descriptor)


def hold_open(paths: Sequence[str]) -> dict[str, str]:
    """Open what lies beyond such folders: path -> a name for it that works for this process and those it forks."""
    held = {}
    for path in paths:
        if barrier(path) is not None:
            descriptor = os.open(path, os.O_PATH)
            held[path] = f"/proc/self/fd/{fcntl.fcntl(descriptor, fcntl.F_DUPFD, _KEPT)}"
            os.close(descriptor)
    return held


def barrier(path: str) -> str | None:
    """The outermost folder on the way that others may not enter; None when the way is open."""
    for folder in reversed(Path(path).parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            return str(folder)
    return None


def _lies_in(place: str, places: Collection[str]) -> bool:
    return any(str(parent) in places for parent in Path(place).parents)


def _place_for(path: str, descriptor: int) -> None:
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.makedirs(path, mode=0o755, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        Path(path).touch()

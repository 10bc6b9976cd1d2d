"""Landlock: which files a process may open, where there is no mount namespace to hide the others.

A program may read below some folders, and write in one that is its own. Names, sizes and dates of other files stay
visible to it: Landlock rules over contents only. See the kernel's `Documentation/userspace-api/landlock`.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Sequence

from grpo_rewards_code.sandbox.inside.kernel import syscall

__all__ = ["abi", "make_ruleset", "restrict"]

_READ_FILE, _READ_FOLDER, _WRITE_FILE = 1 << 2, 1 << 3, 1 << 1
_MAKE_DEVICE, _MAKE_SOCKET, _MAKE_PIPE = 1 << 6 | 1 << 11, 1 << 9, 1 << 10
_EXECUTE, _CONTROL_DEVICE = 1 << 0, 1 << 15
_OWN_FOLDER = ~(_MAKE_DEVICE | _MAKE_SOCKET | _MAKE_PIPE | _EXECUTE | _CONTROL_DEVICE)
"""Of the rights that are handled, what a program may do in its own folder: all but what makes more than files."""
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""ABI -> how many rights over files there are since then; all of them are handled, so what no rule gives is refused."""
_NETWORK_RIGHTS = 0b11
_SCOPES = 0b11
_ASK_VERSION = 1
_PATH_BENEATH = 1
_WRITABLE_DEVICES = ("/dev/null", "/dev/zero")
_READABLE_DEVICES = ("/dev/random", "/dev/urandom")


def abi() -> int:
    """The version of Landlock on this machine, from 1; 0 without it."""
    try:
        return syscall("landlock_create_ruleset", 0, 0, _ASK_VERSION)
    except OSError:
        return 0


def make_ruleset(readable: Sequence[str], own: str) -> int:
    """A descriptor of rules that let a process read files below these paths and make them below its own, and nothing
    else."""
    version = abi()
    rights = (1 << max(count for since, count in _FILE_RIGHTS.items() if since <= version)) - 1
    attributes = struct.pack("=QQQ", rights, _NETWORK_RIGHTS, _SCOPES)
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = syscall("landlock_create_ruleset", _pointer(attributes), size, 0)
    for path in readable:
        _allow(rules, path, _READ_FILE | _READ_FOLDER)
    _allow(rules, own, rights & _OWN_FOLDER)
    for path in _READABLE_DEVICES:
        _allow(rules, path, _READ_FILE)
    for path in _WRITABLE_DEVICES:
        _allow(rules, path, _READ_FILE | _WRITE_FILE)
    return rules


def restrict(rules: int) -> None:
    """Put this process under rules, for good; `no new privileges` must be set."""
    syscall("landlock_restrict_self", rules, 0)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        found = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(found).st_mode):
            rights &= ~_READ_FOLDER
        syscall("landlock_add_rule", rules, _PATH_BENEATH, _pointer(struct.pack("=Qi", rights, found)), 0)
    finally:
        os.close(found)


def _pointer(data: bytes) -> ctypes.c_void_p:
    return ctypes.cast(ctypes.create_string_buffer(data, len(data)), ctypes.c_void_p)

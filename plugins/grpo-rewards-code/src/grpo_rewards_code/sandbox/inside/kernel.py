"""The few kernel calls that Python lacks, each of which raises `OSError` with its own name.

Place in the flow: enter → privileges, namespaces, landlock, seccomp → **kernel**.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct

from grpo_rewards_code.sandbox.inside.syscalls import number

__all__ = [
    "CLONE_NEWIPC",
    "CLONE_NEWNET",
    "CLONE_NEWNS",
    "CLONE_NEWPID",
    "CLONE_NEWUSER",
    "CLONE_NEWUTS",
    "bind",
    "clone",
    "die_with_parent",
    "drop_capabilities",
    "make_private",
    "mount",
    "prctl",
    "raise_loopback",
    "read_bytes",
    "set_dumpable",
    "set_no_new_privileges",
    "syscall",
    "unshare",
    "write_text",
]

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000
_SIGCHLD = 17
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_SET_PDEATHSIG = 4, 38, 1
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_CAPABILITY_VERSION_3 = 0x2008_0522

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def syscall(name: str, *arguments: int | bytes | ctypes.c_void_p | None) -> int:
    """Make a system call by name."""
    found = number(name)
    if found is None:
        raise OSError(f"{name}: not on this machine")
    wide = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return _checked(_libc.syscall(ctypes.c_long(found), *wide), name)


def clone(flags: int) -> int:
    """`fork` into new namespaces; 0 in the child. Only for a process of one thread, and the child should soon fork
    by itself: the C library does not hear of this one."""
    return syscall("clone", flags | _SIGCHLD, 0, 0, 0, 0)


def unshare(flags: int) -> None:
    """Leave namespaces that others are in."""
    syscall("unshare", flags)


def mount(kind: str, target: str, options: str = "") -> None:
    """Mount a new file system of a kind, without devices, set-user-id and, for proc, programs."""
    flags = _MS_NOSUID | _MS_NODEV | (_MS_NOEXEC if kind == "proc" else 0)
    _mount(kind, target, kind, flags, options)


def bind(source: str, target: str) -> None:
    """Make a folder or file show at another place too."""
    _mount(source, target, None, _MS_BIND | _MS_REC, "")


def make_private() -> None:
    """From now on what this process mounts is seen by nobody outside its namespace."""
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE, "")


def read_bytes(path: str) -> bytes:
    """What a small file of the kernel's says; without the layers of `open`, which take as long as the rest of a run.

    Bytes, since a process writes some of them (its name, its command line), in whatever encoding it likes.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, 1 << 16)
    finally:
        os.close(file)


def write_text(path: str, text: str) -> None:
    """Tell a file of the kernel's something."""
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def raise_loopback() -> None:
    """Bring up the loopback device of a new network namespace, so that a program may talk to itself."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))


def prctl(option: int, *values: int) -> None:
    """Change something about this process."""
    padded = [ctypes.c_ulong(each) for each in (*values, 0, 0, 0, 0)[:4]]
    _checked(_libc.prctl(option, *padded), f"prctl {option}")


def set_no_new_privileges() -> None:
    """No program that is executed from here gains anything by it."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def set_dumpable(dumpable: bool) -> None:
    """Without it, no process without privileges reads this one's memory or its files in /proc, traces it, or takes its
    descriptors."""
    prctl(_PR_SET_DUMPABLE, int(dumpable))


def die_with_parent() -> None:
    """Be killed when the parent ends; it must have one thread only."""
    prctl(_PR_SET_PDEATHSIG, 9)


def drop_capabilities() -> None:
    """Give up every capability, in this user namespace too."""
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION_3, 0))
    nothing = ctypes.create_string_buffer(24)
    syscall("capset", ctypes.cast(header, ctypes.c_void_p), ctypes.cast(nothing, ctypes.c_void_p))


def _mount(source: str, target: str, kind: str | None, flags: int, options: str) -> None:
    result = _libc.mount(
        source.encode(), os.fsencode(target), kind.encode() if kind else None, ctypes.c_ulong(flags), options.encode()
    )
    _checked(result, f"mount {kind or source} on {target}")


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result

"""Seccomp filters: which system calls a program may make.

Two of them. **Within namespaces** everything but a list is allowed: what would undo the isolation, reach around it
(vsock is in no namespace), or open large parts of the kernel to attack. **Without namespaces** nothing but a list is
allowed: no new process, no socket, no signal to another process, no change to what says who may use a file.

A filter is a list of instructions of classic BPF; see the kernel's `Documentation/userspace-api/seccomp_filter`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Sequence

from grpo_rewards_code.sandbox.inside.kernel import prctl
from grpo_rewards_code.sandbox.inside.syscalls import AUDIT_ARCHITECTURE, number

__all__ = ["ALLOWED_ALONE", "DENIED_IN_NAMESPACES", "alone", "compiled", "in_namespaces", "install", "own_signals"]

# fmt: off
DENIED_IN_NAMESPACES = (
    # other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp", "pidfd_getfd",
    "move_pages", "migrate_pages",
    # the share of the processor that others get, those who watch above all
    "setpriority", "ioprio_set", "sched_setscheduler", "sched_setattr", "sched_setparam",
    # namespaces and mounts
    "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick",
    "mount_setattr", "setns", "unshare",
    # memory that is no process's and no file's, so that no limit counts it
    "memfd_create", "memfd_secret", "shmget", "msgget", "semget", "mq_open",
    # the kernel at large
    "bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key", "io_uring_setup", "io_uring_enter",
    "io_uring_register",
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff",
    "acct", "quotactl", "quotactl_fd",
    "open_by_handle_at", "name_to_handle_at", "iopl", "ioperm", "syslog", "settimeofday", "clock_settime", "adjtimex",
    "clock_adjtime",
    "sethostname", "setdomainname", "lookup_dcookie", "nfsservctl", "vhangup", "personality", "mbind",
    "set_mempolicy", "fanotify_init", "ustat",
    "sysfs", "modify_ldt", "uselib",
)

ALLOWED_ALONE = (
    "read", "write", "open", "openat", "close", "stat", "fstat", "lstat", "newfstatat", "statx", "lseek", "pread64",
    "pwrite64", "readv", "writev", "preadv", "pwritev",
    "preadv2", "pwritev2", "access", "faccessat", "pipe", "pipe2", "select", "pselect6", "poll", "ppoll",
    "epoll_create", "epoll_create1", "epoll_ctl",
    "epoll_wait", "epoll_pwait", "dup", "dup2", "dup3", "flock", "getdents", "getdents64", "readlink", "readlinkat",
    "getcwd", "chdir", "fchdir", "statfs",
    "fstatfs", "fsync", "fdatasync", "ftruncate", "fadvise64", "sendfile", "splice", "tee", "copy_file_range",
    "mmap", "mprotect", "munmap", "mremap", "madvise", "mincore", "brk", "mlock", "munlock",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait", "rt_sigsuspend",
    "sigaltstack", "pause",
    "nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday", "time", "times", "getitimer",
    "setitimer", "alarm",
    "timer_create", "timer_settime", "timer_gettime", "timer_getoverrun", "timer_delete", "timerfd_create",
    "timerfd_settime",
    "timerfd_gettime",
    "getpid", "getppid", "gettid", "getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups",
    "getpgrp", "getpgid", "getsid", "uname",
    "sysinfo", "getrlimit", "getrusage", "umask", "exit", "exit_group", "futex", "set_robust_list", "set_tid_address",
    "sched_yield",
    "sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min",
    "getpriority",
    "arch_prctl", "rseq", "membarrier", "getrandom", "getcpu", "eventfd", "eventfd2", "wait4", "waitid",
    "restart_syscall", "close_range",
    "kill", "tgkill",
    "socketpair", "sendto", "recvfrom", "sendmsg", "recvmsg", "shutdown", "getsockname", "getpeername", "getsockopt",
    "setsockopt",
    # where Landlock lets it: in its own folder
    "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat", "renameat2", "symlink", "symlinkat",
    "link", "linkat",
)
# fmt: on

_UNKNOWN = ("clone3", "faccessat2", "openat2", "epoll_pwait2")
"""Newer calls for which the C library has an older one, if only it is told that they do not exist."""

_LOAD, _EQUAL, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x45, 0x54, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_X32_BIT = 0x4000_0000
_NEW_NAMESPACES = 0x7E02_0080
_CLONE_THREAD = 0x0001_0000
_FAMILIES_IN_NAMESPACES = (1, 2, 10)  # unix, IPv4, IPv6: those that network namespaces confine
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_PRCTL_ALLOWED = (15, 16, 3, 39)  # set and get the name, ask for two flags: nothing that loosens
_FCNTL_ALLOWED = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    36,
    37,
    38,
    1030,
    1031,
    1032,
    1033,
    1034,
)  # without F_SETOWN: that sends signals
_IOCTL_ALLOWED = (
    0x5401,
    0x5413,
    0x541B,
    0x5421,
    0x5450,
    0x5451,
)  # is it a terminal, bytes waiting, blocking, close on exec

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, operand."""


def in_namespaces() -> list[Instruction]:
    """The filter of a program that namespaces confine."""
    denied = _return(_ERROR | errno.EPERM)
    return [
        *_right_architecture(),
        *_unknown(["clone3"]),
        *_checked_argument("clone", 0, bits=_NEW_NAMESPACES, otherwise=_ALLOW),
        *_one_of("prlimit64", 0, [0]),  # not the limits of who watches
        *_one_of("sched_setaffinity", 0, [0]),
        *_one_of("socket", 0, _FAMILIES_IN_NAMESPACES),
        *_one_of("socketpair", 0, _FAMILIES_IN_NAMESPACES),
        *[each for name in DENIED_IN_NAMESPACES for each in _on(name, [denied])],
        _return(_ALLOW),
    ]


def alone() -> list[Instruction]:
    """The filter of a program that is one process among all of the machine's; `own_signals` goes
    before it."""
    return [
        *_right_architecture(),
        *_unknown(_UNKNOWN),
        *_threads_only(),
        *_one_of("prctl", 0, _PRCTL_ALLOWED),
        *_one_of("fcntl", 1, _FCNTL_ALLOWED),
        *_one_of("ioctl", 1, _IOCTL_ALLOWED),
        *_one_of("prlimit64", 0, [0]),
        *_no_truncation("open", 1),
        *_no_truncation("openat", 2),
        *[each for name in ALLOWED_ALONE for each in _on(name, [_return(_ALLOW)])],
        _return(_ERROR | errno.EPERM),
    ]


def own_signals(own_pid: int) -> list[Instruction]:
    """The filter that leaves a process signals to itself only."""
    return [
        *_right_architecture(),
        *_one_of("kill", 0, [own_pid]),
        *_one_of("tgkill", 0, [own_pid]),
        _return(_ALLOW),
    ]


def compiled(instructions: Sequence[Instruction]) -> bytes:
    """A filter as the kernel reads it."""
    return b"".join(struct.pack("=HBBI", *each) for each in instructions)


def install(filter_: bytes) -> None:
    """Put a filter on this process, its threads to come and its children; `no new privileges` must be set."""
    code = ctypes.create_string_buffer(filter_, len(filter_))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(filter_) // 8, ctypes.addressof(code)))
    prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(program))


def _right_architecture() -> list[Instruction]:
    """A 32-bit call has other numbers, so all of them are fatal."""
    instructions = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, AUDIT_ARCHITECTURE[platform.machine()]),
        _return(_KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if platform.machine() == "x86_64":
        instructions += [(_ANY_BIT, 0, 1, _X32_BIT), _return(_KILL)]
    return instructions


def _unknown(names: Sequence[str]) -> list[Instruction]:
    return [each for name in names for each in _on(name, [_return(_ERROR | errno.ENOSYS)])]


def _one_of(name: str, argument: int, values: Sequence[int]) -> list[Instruction]:
    """Allow a call whose argument is one of these values, and no other."""
    tests = [(_EQUAL, len(values) - index, 0, value & 0xFFFF_FFFF) for index, value in enumerate(values)]
    return _on(name, [_load(argument), *tests, _return(_ERROR | errno.EPERM), _return(_ALLOW)])


def _checked_argument(name: str, argument: int, *, bits: int, otherwise: int) -> list[Instruction]:
    """Refuse a call whose argument has any of these bits."""
    return _on(name, [_load(argument), (_ANY_BIT, 0, 1, bits), _return(_ERROR | errno.EPERM), _return(otherwise)])


def _no_truncation(name: str, argument: int) -> list[Instruction]:
    """Refuse to open a file for reading and empty it all the same, which Landlock does not know before Linux 6.2."""
    tests = [_load(argument), (_AND, 0, 0, os.O_ACCMODE | os.O_TRUNC), (_EQUAL, 0, 1, os.O_RDONLY | os.O_TRUNC)]
    return _on(name, [*tests, _return(_ERROR | errno.EACCES), _return(_ALLOW)])


def _threads_only() -> list[Instruction]:
    threads = [
        _load(0),
        (_ANY_BIT, 1, 0, _NEW_NAMESPACES),
        (_ANY_BIT, 1, 0, _CLONE_THREAD),
        _return(_ERROR | errno.EPERM),
        _return(_ALLOW),
    ]
    return _on("clone", threads)


def _on(name: str, then: Sequence[Instruction]) -> list[Instruction]:
    """Instructions for one call, which all end in a return; other calls go on behind them."""
    found = number(name)
    return [] if found is None else [(_EQUAL, 0, len(then), found), *then]


def _load(argument: int) -> Instruction:
    """The lower half of an argument; the kernel ignores the upper one of those that are looked at here."""
    return (_LOAD, 0, 0, _FIRST_ARGUMENT_AT + 8 * argument)


def _return(value: int) -> Instruction:
    return (_RETURN, 0, 0, value)

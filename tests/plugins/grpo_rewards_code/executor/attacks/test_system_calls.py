"""System calls that would reach around the isolation, and the privileges for them."""

from __future__ import annotations

import os

from grpo_rewards_code.sandbox.inside.syscalls import number
from tests.plugins.grpo_rewards_code.places import Place

_LIBC = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"


def _call(name: str, arguments: str) -> str:
    return f"libc.syscall({number(name)}, {arguments})"


_CALLS = {
    "ptrace": "libc.ptrace(16, os.getppid(), 0, 0)",
    "trace me": "libc.ptrace(0, 0, 0, 0)",
    "mount": "libc.mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None)",
    "umount": "libc.umount2(b'/proc', 2)",
    "unshare user": "libc.unshare(0x10000000)",
    "unshare net": "libc.unshare(0x40000000)",
    "setns": "libc.setns(0, 0)",
    "chroot": "libc.chroot(b'/tmp')",
    "pivot_root": _call("pivot_root", "b'/tmp', b'/tmp'"),
    "clone into a namespace": _call("clone", "0x10000000 | 17, 0, 0, 0, 0"),
    "clone3": _call("clone3", "ctypes.create_string_buffer(88), 88"),
    "io_uring": _call("io_uring_setup", "8, ctypes.create_string_buffer(120)"),
    "keyctl": _call("keyctl", "0, -3, 0"),
    "add_key": _call("add_key", "b'user', b'name', b'x', 1, -3"),
    "bpf": _call("bpf", "0, ctypes.create_string_buffer(64), 64"),
    "perf_event_open": _call("perf_event_open", "ctypes.create_string_buffer(112), 0, -1, -1, 0"),
    "userfaultfd": _call("userfaultfd", "0"),
    "process_vm_readv": _call("process_vm_readv", "os.getppid(), 0, 0, 0, 0, 0"),
    "kcmp": _call("kcmp", "os.getpid(), os.getppid(), 0, 0, 0"),
    "open_by_handle_at": _call("open_by_handle_at", "0, ctypes.create_string_buffer(64), 0"),
    "sethostname": "libc.sethostname(b'x', 1)",
    "memfd_create": "libc.memfd_create(b'x', 0)",
    "shmget": "libc.shmget(0x5EC, 4096, 0o1666)",
    "msgget": "libc.msgget(0x5EC, 0o1666)",
    "semget": "libc.semget(0x5EC, 1, 0o1666)",
    "setuid": "max(libc.setuid(0), libc.setresuid(0, 0, 0))",
}


def test_calls_that_reach_around_the_isolation_fail(place: Place) -> None:
    program = _LIBC + "".join(f"print({name!r}, ':', {call} >= 0, sep='')\n" for name, call in _CALLS.items())
    assert [line for line in place.says(program).splitlines() if not line.endswith("False")] == []


def test_calls_by_other_numbers_are_fatal(place: Place) -> None:
    """x86-64 has a second set of numbers, for pointers of 32 bits; elsewhere nothing answers to them."""
    result = place.script(_LIBC + "print(libc.syscall(0x40000000 + 39))")
    fatal = os.uname().machine == "x86_64"
    assert (result.status, result.stdout) == (("killed", "") if fatal else ("ok", "-1\n"))


def test_the_user_is_nobody_and_has_no_capability(place: Place) -> None:
    assert "0" not in place.says("import os\nprint(os.getuid(), os.geteuid(), os.getgid())").split()
    if place.mode != "alone":
        status = place.says("print(open('/proc/self/status').read())")
        facts = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        assert {facts[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
        assert facts["NoNewPrivs"].strip() == "1"
        assert facts["Seccomp"].strip() == "2"

"""System calls that would reach around the isolation, and the privileges for them."""

from __future__ import annotations

import os

import pytest

from tests.plugins.grpo_rewards_code.places import Place

_LIBC = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"


_CALLS = {
    "ptrace": "libc.ptrace(16, os.getppid(), 0, 0)",
    "trace me": "libc.ptrace(0, 0, 0, 0)",
    "mount": "libc.mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None)",
    "umount": "libc.umount2(b'/proc', 2)",
    "unshare user": "libc.unshare(0x10000000)",
    "unshare net": "libc.unshare(0x40000000)",
    "setns": "libc.setns(0, 0)",
    "chroot": "libc.chroot(b'/tmp')",
    "pivot_root": "libc.syscall(155, b'/tmp', b'/tmp')",
    "clone into a namespace": "libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)",
    "clone3": "libc.syscall(435, ctypes.create_string_buffer(88), 88)",
    "io_uring": "libc.syscall(425, 8, ctypes.create_string_buffer(120))",
    "keyctl": "libc.syscall(250, 0, -3, 0)",
    "add_key": "libc.syscall(248, b'user', b'name', b'x', 1, -3)",
    "bpf": "libc.syscall(321, 0, ctypes.create_string_buffer(64), 64)",
    "perf_event_open": "libc.syscall(298, ctypes.create_string_buffer(112), 0, -1, -1, 0)",
    "userfaultfd": "libc.syscall(323, 0)",
    "process_vm_readv": "libc.syscall(310, os.getppid(), 0, 0, 0, 0, 0)",
    "kcmp": "libc.syscall(312, os.getpid(), os.getppid(), 0, 0, 0)",
    "open_by_handle_at": "libc.syscall(304, 0, ctypes.create_string_buffer(64), 0)",
    "sethostname": "libc.sethostname(b'x', 1)",
    "memfd_create": "libc.memfd_create(b'x', 0)",
    "shmget": "libc.shmget(0x5EC, 4096, 0o1666)",
    "msgget": "libc.msgget(0x5EC, 0o1666)",
    "semget": "libc.semget(0x5EC, 1, 0o1666)",
    "setuid": "max(libc.setuid(0), libc.setresuid(0, 0, 0))",
    "32-bit numbers": "libc.syscall(0x40000000 + 39)",
}


def test_calls_that_reach_around_the_isolation_fail(place: Place) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers are of x86-64")
    names = [name for name in _CALLS if name != "32-bit numbers"]
    program = _LIBC + "".join(f"print({name!r}, ':', {_CALLS[name]} >= 0, sep='')\n" for name in names)
    assert [line for line in place.says(program).splitlines() if not line.endswith("False")] == []


def test_calls_by_other_numbers_are_fatal(place: Place) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("only x86-64 has them")
    assert place.script(_LIBC + _CALLS["32-bit numbers"]).status == "killed"


def test_the_user_is_nobody_and_has_no_capability(place: Place) -> None:
    assert "0" not in place.says("import os\nprint(os.getuid(), os.geteuid(), os.getgid())").split()
    if place.mode != "alone":
        status = place.says("print(open('/proc/self/status').read())")
        facts = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        assert {facts[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
        assert facts["NoNewPrivs"].strip() == "1"
        assert facts["Seccomp"].strip() == "2"

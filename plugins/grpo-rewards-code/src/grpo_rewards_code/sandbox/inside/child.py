"""The process of one program: its descriptors, its limits, its confinement, then the program itself.

Place in the flow: zygote → **child** → program.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import resource
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from grpo_rewards_code.sandbox.inside import program
from grpo_rewards_code.sandbox.inside.kernel import read_bytes, set_dumpable, set_no_new_privileges, write_text
from grpo_rewards_code.script.inside import talk

__all__ = ["become_program", "guarded"]

_MIB = 1 << 20
_READ_ONLY = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
_FIRST_SAFE = 64
_OPEN_FILES = 256
_STDIN, _STDOUT, _STDERR, _TASK, _RESULT, _REPORT = range(6)
_PROCESSES_COUNTED_SINCE = (5, 14)  # by user namespace; before, all of the user's on the machine


def guarded(report: Callable[[bytes], object], function: Callable[[], object]) -> NoReturn:
    """Call a function in a forked process; a fault of ours is reported as such, never taken for the program's."""
    try:
        function()
    except BaseException as error:  # noqa: BLE001  whatever it is, this process must not return into the zygote
        report(json.dumps({"failed": f"{type(error).__name__}: {error}"[:2000]}).encode())
    finally:
        os._exit(1)


def become_program(
    limits: Mapping[str, Any],
    descriptors: Sequence[int],
    report: int,
    confine: Callable[[str], None],
    folder: str,
    *,
    in_namespaces: bool,
) -> NoReturn:
    """Turn this process into that of the program.

    Args:
        limits: what it may use.
        descriptors: its standard streams, where its task comes from, where its result goes.
        report: where a fault of ours goes; closed before the program starts.
        confine: puts it under Landlock and seccomp, as the level has it, with its folder open to it.
        folder: its own.
        in_namespaces: whether processes are counted for it alone.
    """
    set_dumpable(True)  # the zygote is not, and so it could not open its own files in /proc
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as in any interpreter
    os.setsid()
    os.chdir(folder)
    os.environ["HOME"] = os.environ["TMPDIR"] = folder
    write_text("/proc/self/oom_score_adj", "1000")  # when the machine runs out of memory, this goes first
    given = _as_file(descriptors[_STDIN])
    _set_limits(limits, count_processes=in_namespaces)
    set_no_new_privileges()
    _place([given, *descriptors[1:], report])
    confine(folder)
    told = open(_TASK, "rb")  # noqa: SIM115  one side of a talk reads on
    work = program.read_task(told)
    os.closerange(_REPORT, _OPEN_FILES + _FIRST_SAFE)
    largest_bytes = int(limits["output_kib"]) << 10
    if work["kind"] in talk.KINDS:
        talk.run(work, told, _RESULT, largest_bytes)
    told.close()
    program.run(work, _RESULT, largest_bytes)


def _as_file(pipe: int) -> int:
    """All that comes through a pipe, as a file in memory that nobody can change: programs ask for the size of their
    input (`os.fstat(0).st_size`), as where it is redirected from a file. The program's own limits do not count it."""
    try:
        file = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except OSError:  # refused by what this machine is confined by: the pipe itself has to do
        return pipe
    while chunk := os.read(pipe, _MIB):
        while chunk:
            chunk = chunk[os.write(file, chunk) :]
    os.lseek(file, 0, os.SEEK_SET)
    os.fchmod(file, 0o400)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, _READ_ONLY)
    return file


def _place(descriptors: Sequence[int]) -> None:
    """Give descriptors the numbers from 0 on."""
    safe = [fcntl.fcntl(each, fcntl.F_DUPFD, _FIRST_SAFE) for each in descriptors]
    for target, source in enumerate(safe):
        os.dup2(source, target)


def _set_limits(limits: Mapping[str, Any], *, count_processes: bool) -> None:
    own_bytes = int(read_bytes("/proc/self/statm").split()[0]) * resource.getpagesize()
    cpu_s = max(1, math.ceil(limits["cpu_s"]))
    _limit(resource.RLIMIT_AS, own_bytes + limits["memory_mib"] * _MIB)
    _limit(resource.RLIMIT_CPU, cpu_s, cpu_s + 1)
    _limit(resource.RLIMIT_FSIZE, limits["file_mib"] * _MIB)
    _limit(resource.RLIMIT_CORE, 1)  # not 0: a program that collects dumps is started all the same then, but not at 1
    _limit(resource.RLIMIT_NOFILE, _OPEN_FILES)
    _limit(resource.RLIMIT_MEMLOCK, 0)
    if count_processes and _kernel() >= _PROCESSES_COUNTED_SINCE:
        _limit(resource.RLIMIT_NPROC, limits["processes"] + 1)  # and the one that watches


def _limit(which: int, soft: int, hard: int | None = None) -> None:
    _, highest = resource.getrlimit(which)
    wanted = soft if hard is None else hard
    if highest != resource.RLIM_INFINITY:
        soft, wanted = min(soft, highest), min(wanted, highest)
    resource.setrlimit(which, (soft, wanted))


def _kernel() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(c for c in minor if c.isdigit()) or 0)

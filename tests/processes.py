"""What lives below a process, by /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_LISTENS = "0A"


def below(root: int | None = None) -> dict[int, str]:
    """Id -> state letter (`Z`: a zombie) of all processes below `root`, or below this one; parents come first."""
    parents, states = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            states[int(entry.name)], parents[int(entry.name)] = fields[0], int(fields[1])
    found = [root or os.getpid()]
    while more := [pid for pid, parent in parents.items() if parent in found and pid not in found]:
        found += more
    return {pid: states[pid] for pid in found[1:]}


def alive(pid: int) -> bool:
    """Whether a process still runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(pids: Iterable[int], limit_s: float = 10.0) -> list[int]:
    """Those that still run when the time is over."""
    until = time.monotonic() + limit_s
    left = list(pids)
    while left and time.monotonic() < until:
        time.sleep(0.05)
        left = [pid for pid in left if alive(pid)]
    return left


def open_files() -> int:
    """Open descriptors of this process."""
    return len(os.listdir("/proc/self/fd"))


def marked(mark: str) -> list[int]:
    """The processes that still run, of all of the machine, in whose environment `mark` is, as `NAME=value`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and alive(int(entry.name)):
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark.encode() in variables:
                found.append(int(entry.name))
    return found


def listening(pid: int) -> list[str]:
    """The addresses that a process listens at, as `address:port`; IPv6 ones in the kernel's hexadecimal form."""
    inodes, found = set(), []
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                link = os.readlink(f"/proc/{pid}/fd/{name}")
                inodes.add(link.removeprefix("socket:[").removesuffix("]"))
    for version in ("tcp", "tcp6"):
        table = Path(f"/proc/{pid}/net/{version}")
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            fields = line.split()
            if fields[3] == _LISTENS and fields[9] in inodes:
                address, port = fields[1].split(":")
                readable = ".".join(str(byte) for byte in reversed(bytes.fromhex(address)))
                found.append(f"{readable if version == 'tcp' else address}:{int(port, 16)}")
    return found

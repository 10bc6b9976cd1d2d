"""Who holds a run's folder: what the lock's file says, and whether that process still runs."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import socket
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

__all__ = ["Holder", "myself", "process_now", "read_holder", "write_holder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """What the lock's file says."""

    host: str
    """Name of the machine."""
    pid: int
    """Process id."""
    since: str
    """Date and time, with its zone."""
    command: str
    """As it was typed."""
    token: str
    """Of this holding; no other has it."""
    kernel: str
    """Of the machine as it was last started: processes with the same one see each other's kernel locks."""
    space: str
    """Of process ids: containers have their own."""
    began: str
    """When the process did, by the kernel's count: a process id is used again."""
    handed_over: bool = False
    """Its processes take it next; until then nobody else may."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since} ({self.command})"


def myself() -> Holder:
    """This process, with a new token."""
    return Holder(
        host=socket.gethostname(),
        pid=os.getpid(),
        since=datetime.now().astimezone().isoformat(sep=" ", timespec="seconds"),
        command=shlex.join([Path(sys.argv[0]).name.replace("__main__.py", "grpoctl"), *sys.argv[1:]]),
        token=secrets.token_hex(16),
        kernel=_text("/proc/sys/kernel/random/boot_id") or socket.gethostname(),
        space=_space(),
        began=process_now(os.getpid()) or "",
    )


def process_now(pid: int) -> str | None:
    """When the process with this id began, empty where the system does not tell; None: there is none, or only its
    remains."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    state, *fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split() or [""]
    if state == "Z":
        return None
    return fields[18] if len(fields) > 18 else ""


def read_holder(descriptor: int) -> Holder | None:
    """What the file says; None: nothing, or nothing that can be read."""
    try:
        return Holder(**json.loads(os.pread(descriptor, 1 << 16, 0)))
    except (OSError, ValueError, TypeError):
        return None


def write_holder(descriptor: int, holder: Holder) -> None:
    """Have the file say so."""
    data = (json.dumps(asdict(holder), indent=2) + "\n").encode()
    os.pwrite(descriptor, data, 0)
    os.ftruncate(descriptor, len(data))


def _space() -> str:
    with suppress(OSError):
        return str(os.stat("/proc/self/ns/pid").st_ino)
    return ""


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""

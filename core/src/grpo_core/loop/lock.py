"""One run folder, one writer: whoever changes a run's folder holds its lock from before the first change to its end.

The lock is the kernel's (`flock` on RUN/run.lock), so it ends with its holder, however that ends. The file says who
holds it. Where the kernel's lock does not reach (another machine of a shared file system, or a file system without
locks), what the file says decides: it is valid while its time of change goes on, which the holder sees to. Readers
need no lock.

A launcher holds it for the changes it makes itself, and hands it over to the process of its that writes, rank 0.
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from grpo_core.errors import UsageError
from grpo_core.loop.holder import Holder, myself, process_now, read_holder, write_holder

__all__ = ["LOCK_FILE", "RunLock", "hold"]

LOCK_FILE = "run.lock"
BEAT_S = 5.0
"""How often the holder says that it is alive."""
STALE_S = 60.0
"""A holder elsewhere that has said nothing for so long is gone."""
_SETTLE_S = 1.0
"""Without the kernel's lock: how long two that come at once need to see which of them wrote last."""
_HANDED = "GRPO_RUN_LOCK"
"""The token of a lock that a launcher hands over to its processes."""
_open: set[int] = set()
"""Descriptors of held locks, which a forked process must not keep."""


class RunLock:
    """A held lock."""

    def __init__(self, run_dir: Path) -> None:
        """Take it; raises `UsageError` that says who holds it, and `OSError` where the folder cannot be written."""
        self._path = run_dir / LOCK_FILE
        self._me = myself()
        self._descriptor = self._take()
        self._ended = threading.Event()
        self._beats = threading.Thread(target=self._beat, name="run-lock", daemon=True)
        self._beats.start()

    def is_held(self) -> bool:
        """Whether the folder still has this lock: not when it was removed, moved or replaced, or another one, which
        took this process for gone, has it."""
        if not _is_at(self._path, self._descriptor):
            return False
        holder = read_holder(self._descriptor)
        return holder is None or holder.token == self._me.token

    def take_again(self) -> None:
        """Take the lock of the folder that now is where the run's was; raises as the constructor."""
        before, self._descriptor = self._descriptor, self._take()
        _close(before)

    @contextmanager
    def handed_over(self) -> Iterator[None]:
        """In this context a process that this one starts can take it, and nobody else."""
        with suppress(OSError):
            write_holder(self._descriptor, replace(self._me, handed_over=True))
        os.environ[_HANDED] = self._me.token
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        try:
            yield
        finally:
            os.environ.pop(_HANDED, None)

    def release(self) -> None:
        """Let go of it; the file goes too, unless another process has it by now."""
        self._ended.set()
        self._beats.join()
        if self.is_held():
            with suppress(OSError):
                self._path.unlink()
        _close(self._descriptor)

    def _take(self) -> int:
        until = time.monotonic() + 2 * STALE_S
        while time.monotonic() < until:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                if not self._is_ours(descriptor):
                    continue  # whoever held it removed the file meanwhile
                _open.add(descriptor)
                return descriptor
            finally:
                if descriptor not in _open:
                    os.close(descriptor)
        raise UsageError(f"the lock {self._path} comes and goes", hint="see what else works in that folder")

    def _is_ours(self, descriptor: int) -> bool:
        """Whether the file that was opened is the folder's and now says that it is ours; raises `UsageError` when it is
        somebody else's."""
        kernel_locks = _lock(descriptor)
        if kernel_locks is False:
            raise _taken(self._path, _who(descriptor))
        holder = read_holder(descriptor)
        if holder is not None and not self._may_follow(holder, descriptor, kernel_locks=bool(kernel_locks)):
            raise _taken(self._path, holder)
        if not _is_at(self._path, descriptor):
            return False
        write_holder(descriptor, self._me)
        if not kernel_locks:
            time.sleep(_SETTLE_S)
            winner = read_holder(descriptor)
            if winner is None or winner.token != self._me.token:
                raise _taken(self._path, winner)
        return True

    def _may_follow(self, holder: Holder, descriptor: int, *, kernel_locks: bool) -> bool:
        """Whether the holder that the file names is gone, or handed it over to this process."""
        if holder.handed_over and holder.token == os.environ.get(_HANDED):
            return True
        if holder.kernel == self._me.kernel and kernel_locks and not holder.handed_over:
            return True  # or the kernel would not have given it
        if (holder.kernel, holder.space) == (self._me.kernel, self._me.space):
            now = process_now(holder.pid)
            return now is None or (now != "" and now != holder.began)
        return self._is_silent(descriptor, holder)

    def _is_silent(self, descriptor: int, holder: Holder) -> bool:
        """Watch whether the file's time of change goes on, until it is old by the file system's own clock."""
        first = os.fstat(descriptor).st_mtime_ns
        left_s = STALE_S - max(0.0, _clock_of(self._path.parent) - first / 1e9)
        if left_s > 0:
            message = (
                f"{self._path.parent} was written by {holder}: watching for up to {left_s:.0f} s whether it still is"
            )
            print(message, file=sys.stderr, flush=True)
        until = time.monotonic() + left_s
        while time.monotonic() < until:
            time.sleep(min(1.0, BEAT_S))
            try:
                with self._path.open("rb") as anew:  # or a network file system would answer from memory
                    if os.fstat(anew.fileno()).st_mtime_ns != first:
                        return False
            except FileNotFoundError:
                return True  # it has just ended
        return True

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_S):
            with suppress(OSError):
                os.utime(self._descriptor)


@contextmanager
def hold(run_dir: Path) -> Iterator[RunLock]:
    """Hold the lock of a run's folder, which is there; raises `UsageError` that says who has it already, or why the
    folder cannot be written."""
    try:
        lock = RunLock(run_dir)
    except OSError as error:
        raise UsageError(
            f"{run_dir} cannot be written: {error.strerror or error}",
            hint="choose another --output, free disk space, or make the folder writable",
        ) from error
    try:
        yield lock
    finally:
        lock.release()


def _lock(descriptor: int) -> bool | None:
    """Whether the kernel gives the lock; None: this file system has none."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # a network file system that stumbles has lost nothing


def _who(descriptor: int) -> Holder | None:
    """The same, with some patience: its holder has the lock a moment before it says so."""
    for _ in range(20):
        holder = read_holder(descriptor)
        if holder is not None:
            return holder
        time.sleep(0.05)
    return None


def _clock_of(folder: Path) -> float:
    """Now, by the clock of the folder's file system."""
    with tempfile.TemporaryFile(dir=folder) as probe:
        return os.fstat(probe.fileno()).st_mtime


def _close(descriptor: int) -> None:
    _open.discard(descriptor)
    with suppress(OSError):
        os.close(descriptor)


def _let_go() -> None:
    """In a process that was forked: it would keep the lock after its parent's end."""
    for descriptor in list(_open):
        _close(descriptor)


os.register_at_fork(after_in_child=_let_go)


def _taken(path: Path, holder: Holder | None) -> UsageError:
    who = "another process" if holder is None else str(holder)
    return UsageError(
        f"{path.parent} is being written by {who}",
        hint=f"A run's folder has one writer: wait until that one ends, or end it. `grpoctl report {path.parent}` and "
        "`grpoctl eval` read it meanwhile.",
    )

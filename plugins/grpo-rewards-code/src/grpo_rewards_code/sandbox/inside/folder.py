"""A program's own folder where no mount namespace gives it one: made for a run, looked at during it, gone with it.

What lies in it is the program's doing, while it runs and afterwards: folders that nobody may list, names in any
encoding, trees deeper than a path is long, links to elsewhere. So everything is reached by descriptors, no link is
followed, and no tree is walked by its paths.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain

__all__ = ["FILES", "IN_LARGEST_FILES", "Folders", "exceeds", "look", "remove"]

FILES = 1024
"""How many files and folders it may hold."""
IN_LARGEST_FILES = 4
"""How many of the largest files it holds, altogether."""
_DEEPEST = 64
"""Folders within folders; a look keeps one descriptor for each."""
_PREFIX = "grpo-programs-"
_BLOCK_BYTES = 512
_DESCRIPTORS = 512
"""More than a sandbox has, those aside that lead to its interpreter."""
_STALE_S = 60.0
"""A place that was just made is not yet locked."""


class Folders:
    """Where a sandbox makes folders for its runs: a place of its own below a folder for temporary files."""

    def __init__(self, parents: Sequence[str]) -> None:
        """Make the place in the first of `parents` that allows it; `OSError` where none does."""
        self.place = _made_in(parents)
        # Held for as long as this process lives, so that others see which places are in use.
        self._lock = os.open(self.place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        _sweep(os.path.dirname(self.place))
        self._untouched: tuple[str, object] | None = None
        self._left: list[str] = []
        self._cleaner: int | None = None

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """An empty folder, for as long as the context lasts; one that the last run left untouched is as good as new."""
        if self._untouched is None:
            made = os.path.join(self.place, os.urandom(8).hex())
            os.mkdir(made, 0o700)
            self._untouched = made, look(made)
        folder, new = self._untouched
        try:
            yield folder
        finally:
            if look(folder) != new:
                self._untouched = None
                self._left.append(folder)
                self._clean()

    def end(self) -> None:
        """Remove the place."""
        if self._cleaner is not None:
            os.waitpid(self._cleaner, 0)
        with suppress(OSError):  # what cannot be removed now is for the next sandbox to sweep
            remove(self.place)

    def _clean(self) -> None:
        """Remove what runs left, in a process beside the next run: on a disk, that may take longer than a run."""
        if self._cleaner is not None and os.waitpid(self._cleaner, os.WNOHANG)[0] == 0:
            return  # it is for the next one
        self._cleaner = os.fork()
        if self._cleaner == 0:
            try:
                for first, behind in ((3, self._lock), (self._lock + 1, _DESCRIPTORS)):
                    os.closerange(first, behind)  # or the host would wait for the ends of this run's pipes
                for each in self._left:
                    with suppress(OSError):
                        remove(each)
            finally:
                os._exit(0)
        self._left.clear()


def look(folder: str) -> tuple[object, ...]:
    """The same again only while nothing was made, removed, renamed or set in a folder."""
    found = os.stat(folder)
    try:
        names: list[str] | None = os.listdir(folder)
    except PermissionError:
        names = None  # the folder is the program's, which may close it to everybody
    return found.st_mode, found.st_ctime_ns, found.st_mtime_ns, names


def exceeds(folders: Sequence[str], file_mib: int, pid: int | None = None) -> bool:
    """Whether a program's folders hold more than they may: files and folders, or bytes.

    Args:
        folders: they count together.
        file_mib: the largest file.
        pid: the program, where files count too that it holds open and that have no name any more.
    """
    most_bytes = max(1, IN_LARGEST_FILES * file_mib) << 20
    named = (found for each in folders for found in _found_in(each, None, 0))
    nameless = () if pid is None else _nameless(pid, os.stat(folders[0]).st_dev)
    seen: set[tuple[int, int]] = set()
    total_bytes = 0
    for number, found in enumerate(chain(named, nameless), start=1):
        if (found.st_dev, found.st_ino) not in seen:  # of several names, or held open by several threads
            seen.add((found.st_dev, found.st_ino))
            total_bytes += found.st_blocks * _BLOCK_BYTES
        if (number > FILES and found.st_nlink) or total_bytes > most_bytes:
            return True
    return False


def remove(folder: str) -> None:
    """Remove a folder and all in it. Folders in folders are moved up before, so that none is ever far down."""
    top = _opened(folder, None)
    try:
        while names := os.listdir(top):
            for name in names:
                _remove_entry(name, top)
    finally:
        os.close(top)
    os.rmdir(folder)


def _made_in(parents: Sequence[str]) -> str:
    reasons = []
    for parent in map(os.path.realpath, parents):
        place = os.path.join(parent, f"{_PREFIX}{os.urandom(8).hex()}")
        try:
            os.mkdir(place, 0o700)
        except OSError as error:
            reasons.append(f"{parent}: {error.strerror}")
        else:
            return place
    raise OSError(
        f"no folder for the files of programs can be made ({', '.join(reasons)}): "
        "name one that every user may write to in the environment variable TMPDIR"
    )


def _sweep(parent: str) -> None:
    """Remove the places of sandboxes that were killed."""
    for name in os.listdir(parent):
        place = os.path.join(parent, name)
        if name.startswith(_PREFIX):
            with suppress(OSError):  # it is in use, another user's, or just being removed
                if time.time() - os.stat(place).st_mtime < _STALE_S:
                    continue
                held = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    remove(place)
                finally:
                    os.close(held)


def _found_in(name: str, parent: int | None, depth: int) -> Iterator[os.stat_result]:
    """What is in a folder, those below included; a folder that is too deep counts as too many."""
    try:
        folder = _opened(name, parent)
    except OSError:
        return  # the program was quicker: by now it is gone, or something else
    try:
        for each in os.listdir(folder):
            try:
                found = os.stat(each, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                continue  # the same
            if depth > _DEEPEST:
                yield from [found] * (FILES + 1)
            yield found
            if stat.S_ISDIR(found.st_mode):
                yield from _found_in(each, folder, depth + 1)
    finally:
        os.close(folder)


def _nameless(pid: int, device: int) -> Iterator[os.stat_result]:
    """The files of a process that have no name, on a device."""
    with suppress(FileNotFoundError, ProcessLookupError, PermissionError):  # it is ending: then all of it is root's
        for thread in os.listdir(f"/proc/{pid}/task"):
            for each in os.listdir(f"/proc/{pid}/task/{thread}/fd"):
                with suppress(FileNotFoundError):
                    found = os.stat(f"/proc/{pid}/task/{thread}/fd/{each}")
                    if not found.st_nlink and found.st_dev == device:
                        yield found


def _remove_entry(name: str, top: int) -> None:
    try:
        os.unlink(name, dir_fd=top)
        return
    except IsADirectoryError:
        folder = _opened(name, top)
    try:
        for each in os.listdir(folder):
            try:
                os.unlink(each, dir_fd=folder)
            except IsADirectoryError:
                os.close(_opened(each, folder))  # who moves a folder must be allowed to write in it
                os.rename(each, os.urandom(8).hex(), src_dir_fd=folder, dst_dir_fd=top)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)


def _opened(name: str, parent: int | None) -> int:
    """A folder's descriptor, also where its owner closed it to everybody."""
    place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        itself = f"/proc/self/fd/{place}"  # a name could lead elsewhere by now
        if os.fstat(place).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(itself, 0o700)
        return os.open(itself, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(place)

"""One run folder, one writer: who has it, when it is free again, and where the kernel's lock does not reach."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from grpo_core.errors import UsageError
from grpo_core.loop import lock as module
from grpo_core.loop.lock import LOCK_FILE, hold

HOLDER = """
import os, subprocess, sys, time
from pathlib import Path
from grpo_core.loop.lock import hold
with hold(Path(sys.argv[1])):
    {children}
    print("held", flush=True)
    time.sleep(600)
"""
FORKS = """
    child = os.fork()
    if not child:
        time.sleep(600)
    print(child, flush=True)
    print(subprocess.Popen(["sleep", "600"], close_fds=False, stdout=subprocess.DEVNULL).pid, flush=True)
"""


@contextmanager
def holder(run: Path, *, children: str = "") -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Another process that holds a folder, and the processes it started."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER.format(children=children.strip()), str(run)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    said = iter(process.stdout.readline, "held\n")
    started = [int(line) for line in said]
    try:
        yield process, started
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        for pid in started:
            os.kill(pid, signal.SIGKILL)


def refusal(run: Path) -> str:
    with pytest.raises(UsageError) as caught, hold(run):
        pass
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_a_second_writer_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    with holder(tmp_path) as (process, _):
        since = json.loads((tmp_path / LOCK_FILE).read_text(encoding="utf-8"))["since"]
        message = refusal(tmp_path)
    assert f"is being written by process {process.pid} on {socket.gethostname()} since {since} (-c " in message
    assert "one writer: wait until that one ends, or end it. `grpoctl report" in message


def test_a_kill_frees_it_at_once_whatever_the_killed_process_had_started(tmp_path: Path) -> None:
    with holder(tmp_path, children=FORKS) as (process, started):
        assert len(started) == 2
        process.kill()
        process.wait()
        with hold(tmp_path):
            for pid in started:
                os.kill(pid, 0)  # they still run


def test_a_clean_end_leaves_nothing_behind(tmp_path: Path) -> None:
    with hold(tmp_path) as lock:
        assert lock.is_held()
        assert [path.name for path in tmp_path.iterdir()] == [LOCK_FILE]
    assert list(tmp_path.iterdir()) == []
    with hold(tmp_path):
        pass


def test_a_launcher_hands_it_to_its_own_processes_and_to_nobody_else(tmp_path: Path) -> None:
    with hold(tmp_path) as lock:
        with lock.handed_over():
            token = os.environ.pop("GRPO_RUN_LOCK")
            message = refusal(tmp_path)
            os.environ["GRPO_RUN_LOCK"] = token
            with holder(tmp_path) as (process, _):
                pid = json.loads((tmp_path / LOCK_FILE).read_text(encoding="utf-8"))["pid"]
                taken = refusal(tmp_path)
        assert f"process {os.getpid()} on" in message
        assert pid == process.pid
        assert f"process {pid} on" in taken
        assert "GRPO_RUN_LOCK" not in os.environ
    with hold(tmp_path):  # the one that had it was killed
        pass


def test_it_is_free_when_a_launcher_died_before_its_processes_came(tmp_path: Path) -> None:
    script = HOLDER.replace(
        "with hold(Path(sys.argv[1])):", "with hold(Path(sys.argv[1])) as lock, lock.handed_over():"
    )
    command = [sys.executable, "-c", script.format(children=""), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert f"process {process.pid} on" in refusal(tmp_path)
        process.kill()
    with hold(tmp_path):
        pass


def elsewhere(run: Path, *, age_s: float) -> None:
    """The lock of a process on another machine, which the kernel of this one knows nothing of."""
    with hold(run):
        said = json.loads((run / LOCK_FILE).read_text(encoding="utf-8"))
    said |= {"host": "far", "pid": 7, "kernel": "another", "space": "1", "began": "2", "token": "t"}
    (run / LOCK_FILE).write_text(json.dumps(said), encoding="utf-8")
    then = time.time() - age_s
    os.utime(run / LOCK_FILE, (then, then))


def test_another_machine_that_said_nothing_for_a_minute_is_gone(tmp_path: Path) -> None:
    elsewhere(tmp_path, age_s=61)
    with hold(tmp_path):
        assert f'"host": "{socket.gethostname()}"' in (tmp_path / LOCK_FILE).read_text(encoding="utf-8")


def test_another_machine_that_still_writes_has_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere(tmp_path, age_s=1)
    beat = threading.Timer(0.3, lambda: os.utime(tmp_path / LOCK_FILE))
    beat.start()
    assert "is being written by process 7 on far since" in refusal(tmp_path)
    assert "watching for up to" in capsys.readouterr().err
    beat.join()


def test_another_machine_that_is_silent_while_it_is_watched_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STALE_S", 1.5)
    elsewhere(tmp_path, age_s=0)
    with hold(tmp_path) as lock:
        assert lock.is_held()


def test_another_machine_that_ends_while_it_is_watched_gives_it_up(tmp_path: Path) -> None:
    elsewhere(tmp_path, age_s=1)
    end = threading.Timer(0.3, (tmp_path / LOCK_FILE).unlink)
    end.start()
    with hold(tmp_path) as lock:
        assert lock.is_held()
    end.join()


def test_the_holder_says_that_it_is_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEAT_S", 0.05)
    with hold(tmp_path):
        os.utime(tmp_path / LOCK_FILE, (1, 1))
        until = time.monotonic() + 10
        while (tmp_path / LOCK_FILE).stat().st_mtime < 2 and time.monotonic() < until:
            time.sleep(0.05)
        assert (tmp_path / LOCK_FILE).stat().st_mtime > 2


def test_without_locks_of_the_kernel_what_the_file_says_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(module, "_SETTLE_S", 0.05)
    monkeypatch.setattr(module.fcntl, "flock", no_locks)
    with holder(tmp_path) as (process, _):
        assert f"process {process.pid} on" in refusal(tmp_path)
        process.kill()
        process.wait()
        with hold(tmp_path):
            assert f"process {os.getpid()} on" in refusal(tmp_path)


def test_of_two_that_come_at_once_without_locks_of_the_kernel_one_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    def other_comes(seconds: float) -> None:
        said = json.loads((tmp_path / LOCK_FILE).read_text(encoding="utf-8"))
        (tmp_path / LOCK_FILE).write_text(json.dumps({**said, "token": "t", "pid": 8}), encoding="utf-8")

    monkeypatch.setattr(module.fcntl, "flock", no_locks)
    monkeypatch.setattr(module.time, "sleep", other_comes)
    assert "is being written by process 8 on" in refusal(tmp_path)


def test_a_folder_that_is_gone_or_another_is_noticed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with hold(run) as lock:
        run.rename(tmp_path / "moved")
        assert not lock.is_held()
        run.mkdir()
        assert not lock.is_held()
        lock.take_again()
        assert lock.is_held()
        with hold(tmp_path / "moved"):  # which nobody writes any more
            pass
        said = json.loads((run / LOCK_FILE).read_text(encoding="utf-8"))
        (run / LOCK_FILE).write_text(json.dumps({**said, "token": "t"}), encoding="utf-8")
        assert not lock.is_held()


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).mkdir()
    assert f"{tmp_path} cannot be written: Is a directory\n  choose another --output" in refusal(tmp_path)


def test_a_lock_that_says_nothing_is_free_when_the_kernel_says_so(tmp_path: Path) -> None:
    for text in ("", "nonsense", "[1]", '{"pid": 1}'):
        (tmp_path / LOCK_FILE).write_text(text, encoding="utf-8")
        with hold(tmp_path):
            pass

"""Launchers of several machines meet, in threads of one process."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from grpo_core.ranks import meeting
from grpo_core.ranks.meeting import Meeting
from tests.ranks import free_port

LONG_S = 120


def test_all_machines_meet_whoever_comes_first() -> None:
    port = free_port()
    with ThreadPoolExecutor(3) as pool:
        met = list(
            pool.map(lambda rank: Meeting("127.0.0.1", port, rank, 3, "run", LONG_S).next_rendezvous(), (2, 1, 0))
        )
    assert [each.rank for each in met] == [2, 1, 0]
    assert {each.world_size for each in met} == {3}
    met[0].store.set("from 2", "hello")
    assert met[2].store.get("from 2") == b"hello"


@pytest.mark.parametrize(("rank", "missing"), [(0, "machine 1"), (1, "machine 0")])
def test_who_did_not_come_is_named(
    rank: int, missing: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(meeting, "_TELL_AFTER_S", 0.0)
    caplog.set_level(logging.WARNING)
    port = free_port()
    with pytest.raises(RuntimeError, match=f"{missing} did not come in 1 s"):
        Meeting("127.0.0.1", port, rank, 2, "run", 1).next_rendezvous()
    assert f"machine {rank} waits at 127.0.0.1, port {port} for {missing}, for up to 1 s" in caplog.text


def test_ctrl_c_is_heard_while_a_machine_waits_for_another(tmp_path: Path) -> None:
    meet = ("--nnodes", "2", "--node-rank", "1", "--rdzv-endpoint", f"127.0.0.1:{free_port()}")
    command = [sys.executable, "-m", "grpo_core", "train", *meet]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            assert "machine 1 waits at" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(LONG_S) == 130
        finally:
            process.kill()

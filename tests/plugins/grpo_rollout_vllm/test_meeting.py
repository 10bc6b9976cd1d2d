"""Where weights are handed over: at one address, for those who know the secret; strangers get nothing and break
nothing."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from grpo_rollout_vllm import meeting as module
from grpo_rollout_vllm.broadcast import Broadcast, TensorFact
from grpo_rollout_vllm.meeting import Meeting, Visit
from tests.processes import listening

CPU = torch.device("cpu")


@pytest.fixture
def meeting() -> Iterator[Meeting]:
    with Meeting("127.0.0.1") as made:
        yield made


def until(holds: Callable[[], bool], limit_s: float = 10.0) -> bool:
    end = time.monotonic() + limit_s
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()


def connect(meeting: Meeting) -> socket.socket:
    return socket.create_connection((meeting.address, meeting.port), timeout=10)


def send_weights(meeting: Meeting) -> list[torch.Tensor]:
    """What two receivers get of a tensor that is sent to them through a meeting."""
    weights, received = torch.arange(5.0), []
    facts = [TensorFact.of("w", weights)]

    def receive(rank: int) -> None:
        place = (meeting.address, meeting.port, meeting.secret)
        with Broadcast.join(*place, rank=rank, members=3, device=CPU, limit_s=20.0) as group:
            received.extend(tensor for _, tensor in group.receive(facts))

    receivers = [threading.Thread(target=receive, args=[rank]) for rank in (1, 2)]
    for receiver in receivers:
        receiver.start()
    with Broadcast.open(meeting, members=3, device=CPU, limit_s=20.0, given_up=lambda: False) as group:
        group.send([("w", weights)])
    for receiver in receivers:
        receiver.join(20.0)
    return received


def test_it_listens_at_its_address_and_nowhere_else(meeting: Meeting) -> None:
    assert f"127.0.0.1:{meeting.port}" in listening(os.getpid())
    others = [each for each in listening(os.getpid()) if each.endswith(f":{meeting.port}")]
    assert others == [f"127.0.0.1:{meeting.port}"]
    with pytest.raises(OSError):
        Meeting("192.0.2.1")  # an address for documentation: nobody's


def test_what_one_end_writes_the_others_read(meeting: Meeting) -> None:
    visits = [Visit(meeting.address, meeting.port, meeting.secret, limit_s=10.0) for _ in range(2)]
    visits[0].store.set("a", b"1\x00\xff")
    meeting.store.set("b", "2")
    stores = [meeting.store, *(visit.store for visit in visits)]
    assert until(lambda: all(store.check(["a", "b"]) for store in stores))
    assert [store.get("a") for store in stores] == [b"1\x00\xff"] * 3
    for visit in visits:
        visit.close()


@pytest.mark.parametrize("said", [b"", b"x", b"0" * 64, b"\x00\xff" * 500, b'["grpo-arrived-1", ""]\n'])
def test_a_stranger_gets_nothing_and_leaves_nothing(meeting: Meeting, said: bytes) -> None:
    meeting.store.set("mine", "1")
    with connect(meeting) as stranger:
        stranger.sendall(said)
        stranger.shutdown(socket.SHUT_WR)
        try:
            answer = stranger.recv(100)
        except ConnectionResetError:
            answer = b""
    assert answer == b""
    assert meeting.store.list_keys() == ["mine"]


def test_torchs_own_client_is_a_stranger(meeting: Meeting) -> None:
    with pytest.raises(RuntimeError):
        dist.TCPStore(
            meeting.address, meeting.port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=1)
        )
    assert meeting.store.list_keys() == []


def test_weights_arrive_while_strangers_hang_about(meeting: Meeting) -> None:
    strangers = [connect(meeting) for _ in range(10)]
    strangers[0].sendall(b"\x00" * 1000)
    received = send_weights(meeting)
    assert [tensor.tolist() for tensor in received] == [[0.0, 1.0, 2.0, 3.0, 4.0]] * 2
    for stranger in strangers:
        stranger.close()


def test_strangers_that_say_nothing_are_not_waited_for_longer_than_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_INTRODUCE_LIMIT_S", 0.2)
    monkeypatch.setattr(module, "_MOST_STRANGERS", 2)
    with Meeting("127.0.0.1") as meeting:
        crowd = [connect(meeting) for _ in range(6)]  # more than there is room for
        assert all(stranger.recv(1) == b"" for stranger in crowd)
        visit = Visit(meeting.address, meeting.port, meeting.secret, limit_s=10.0)
        visit.store.set("here", "")
        assert until(lambda: meeting.store.check(["here"]))
        visit.close()
        for stranger in crowd:
            stranger.close()


def test_nothing_listens_and_no_thread_is_left_once_it_is_over() -> None:
    before = threading.active_count()
    with Meeting("127.0.0.1") as meeting:
        port = meeting.port
        send_weights(meeting)
    assert until(lambda: threading.active_count() <= before)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)

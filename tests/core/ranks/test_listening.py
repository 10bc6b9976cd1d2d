"""Where a run listens, by what the kernel says: at the address that is used, and at no other."""

from __future__ import annotations

import os
import socket
from datetime import timedelta

import pytest
import torch.distributed as dist

from grpo_core.ranks import listening as module
from grpo_core.ranks.lifeline import Lifeline, connect, listen
from grpo_core.ranks.listening import listen_at, make_store
from tests.processes import listening
from tests.ranks import free_port

NOBODYS = "192.0.2.1"
"""An address for documentation."""


def heard_at(port: int) -> list[str]:
    """The addresses of this process at a port."""
    return [each.rpartition(":")[0] for each in listening(os.getpid()) if each.endswith(f":{port}")]


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "127.0.0.2"])
def test_a_loopback_address_is_the_only_one(address: str) -> None:
    with listen_at(address) as listener:
        assert heard_at(listener.getsockname()[1]) == ["127.0.0.1" if address == "localhost" else address]


def test_an_address_of_something_in_between_is_listened_for_everywhere() -> None:
    with listen_at(NOBODYS) as listener:
        assert heard_at(listener.getsockname()[1]) == ["0.0.0.0"]


def test_so_is_a_name_that_leads_to_loopback_here_and_here_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.1.1", 0))]
    monkeypatch.setattr(module.socket, "getaddrinfo", lambda *_, **__: found)
    assert module._own_places("this-machine") == []
    assert module._own_places("127.0.1.1") == [(socket.AF_INET, "127.0.1.1")]


def test_a_name_that_leads_to_this_machine_is_listened_for_there(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 0)) for host in ("127.0.1.1", "10.0.0.7")]
    monkeypatch.setattr(module.socket, "getaddrinfo", lambda *_, **__: found)
    assert module._own_places("this-machine") == [(socket.AF_INET, "10.0.0.7")]


def test_a_port_that_is_taken_is_an_error() -> None:
    with listen_at("127.0.0.1") as listener, pytest.raises(OSError, match="in use"):
        listen_at("127.0.0.1", listener.getsockname()[1])


def test_a_store_listens_at_its_address_and_outlives_strangers() -> None:
    port = free_port()
    store = make_store("127.0.0.1", port, limit_s=20.0)
    assert heard_at(port) == ["127.0.0.1"]
    for said in (b"", b"\x00" * 100, b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096)):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as stranger:
            stranger.sendall(said)
    other = dist.TCPStore("127.0.0.1", port, timeout=timedelta(seconds=20), wait_for_workers=False)
    other.set("key", "value")
    assert store.get("key") == b"value"


def test_rank_zeros_lifelines_come_in_at_the_runs_address_alone() -> None:
    seen: list[list[str]] = []
    others: list[Lifeline] = []

    def publish(text: str) -> None:
        seen.append(heard_at(int(text.split(" ")[0])))
        others.append(connect("127.0.0.1", text, 1, limit_s=20.0))

    for end in (listen("127.0.0.1", 2, limit_s=20.0, publish=publish), *others):
        end.close()
    assert seen == [["127.0.0.1"]]

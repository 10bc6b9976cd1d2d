"""The connections between ranks, in one process: deaths, goodbyes, strangers."""

from __future__ import annotations

import queue
import socket
import threading

import pytest

from grpo_core.errors import RankError
from grpo_core.ranks.lifeline import Lifeline, connect, listen


def connected() -> tuple[Lifeline, Lifeline]:
    """Rank 0's end and rank 1's."""
    published: queue.Queue[str] = queue.Queue()
    found: list[Lifeline] = []
    thread = threading.Thread(
        target=lambda: found.append(listen("127.0.0.1", 2, limit_s=60.0, publish=published.put)), daemon=True
    )
    thread.start()
    other = connect("127.0.0.1", published.get(timeout=60), 1, limit_s=60.0)
    thread.join(60)
    return found[0], other


def test_a_connection_that_ends_without_goodbye_is_a_death() -> None:
    first, other = connected()
    assert first.lost(0.05) == []
    other.close()
    assert first.lost(60.0) == [1]
    assert first.peers == frozenset()
    first.close()


def test_the_death_of_rank_0_is_seen_too() -> None:
    first, other = connected()
    first.close()
    assert other.lost(60.0) == [0]
    other.close()


def test_a_goodbye_is_no_death() -> None:
    first, other = connected()
    other.say_goodbye()
    other.close()
    assert first.lost(1.0) == []
    assert first.peers == frozenset()
    first.say_goodbye()  # to nobody
    first.close()


def test_a_stranger_is_turned_away_and_the_missing_rank_is_named() -> None:
    strangers: list[socket.socket] = []

    def publish(text: str) -> None:
        stranger = socket.create_connection(("127.0.0.1", int(text.split(" ")[0])))
        stranger.sendall(b"let me in 1".ljust(80))
        strangers.append(stranger)

    with pytest.raises(RankError, match="rank 0 waited 0 s in 'start' for rank 1 to connect"):
        listen("127.0.0.1", 2, limit_s=0.2, publish=publish)
    strangers[0].close()


def test_an_address_that_nobody_listens_at_is_said() -> None:
    with pytest.raises(RankError, match=r"rank 1 cannot connect to rank 0 at 127\.0\.0\.1, port 1(.|\n)*MASTER_ADDR"):
        connect("127.0.0.1", "1 token", 1, limit_s=1.0)

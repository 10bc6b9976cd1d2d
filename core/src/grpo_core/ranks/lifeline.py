"""Open connections between rank 0 and every other rank. When a process dies, the kernel closes its end at once, so
its death is known within milliseconds, however it died and whatever the others are doing.
"""

from __future__ import annotations

import secrets
import selectors
import socket
import time
from collections.abc import Callable

from grpo_core.errors import RankError
from grpo_core.ranks.listening import listen_at

__all__ = ["Lifeline", "connect", "listen"]

_GOODBYE = b"bye"
_LINE_BYTES = 80


class Lifeline:
    """This rank's ends: of rank 0 one for each other rank, of any other rank one to rank 0."""

    def __init__(self, connections: dict[int, socket.socket]) -> None:
        self._open = dict(connections)
        self._selector = selectors.DefaultSelector()
        for rank, connection in connections.items():
            connection.setblocking(False)
            self._selector.register(connection, selectors.EVENT_READ, rank)

    @property
    def peers(self) -> frozenset[int]:
        """The ranks that are still there."""
        return frozenset(self._open)

    def lost(self, timeout_s: float) -> list[int]:
        """Wait for up to `timeout_s` for news; the ranks that died since the last call."""
        if not self._open:
            time.sleep(timeout_s)
            return []
        died = []
        for key, _ in self._selector.select(timeout_s):
            rank, said_goodbye = key.data, self._read(key.data)
            self._selector.unregister(self._open[rank])
            self._open.pop(rank).close()
            if not said_goodbye:
                died.append(rank)
        return died

    def say_goodbye(self) -> None:
        """Tell the others that this process ends as it should."""
        for connection in self._open.values():
            try:
                connection.sendall(_GOODBYE)
            except OSError:
                continue  # it is gone already

    def close(self) -> None:
        """Close all ends."""
        self._selector.close()
        for connection in self._open.values():
            connection.close()
        self._open = {}

    def _read(self, rank: int) -> bool:
        try:
            return self._open[rank].recv(len(_GOODBYE)) == _GOODBYE
        except OSError:
            return False


def listen(address: str, world_size: int, *, limit_s: float, publish: Callable[[str], None]) -> Lifeline:
    """Rank 0: publish where it listens, and take the connections of all others."""
    token = secrets.token_hex(16)
    until, connections = time.monotonic() + limit_s, dict[int, socket.socket]()
    with listen_at(address, backlog=world_size) as server:
        publish(f"{server.getsockname()[1]} {token}")
        while len(connections) < world_size - 1:
            server.settimeout(max(0.01, until - time.monotonic()))
            try:
                connection, _ = server.accept()
            except TimeoutError:
                missing = sorted(set(range(1, world_size)) - connections.keys())
                raise RankError(
                    f"rank 0 waited {limit_s:.0f} s in 'start' for rank {', '.join(map(str, missing))} to connect"
                ) from None
            rank = _introduced(connection, token)
            if rank is not None:
                connections[rank] = connection
    return Lifeline(connections)


def connect(address: str, published: str, rank: int, *, limit_s: float) -> Lifeline:
    """Any other rank: connect to where rank 0 listens."""
    port, token = published.split(" ")
    host = "127.0.0.1" if address == "localhost" else address
    try:
        connection = socket.create_connection((host, int(port)), timeout=limit_s)
        connection.sendall(f"{token} {rank}".ljust(_LINE_BYTES).encode())
    except OSError as error:
        raise RankError(
            f"rank {rank} cannot connect to rank 0 at {address}, port {port}: {error}",
            hint="MASTER_ADDR must be an address of rank 0's machine that the others reach",
        ) from error
    return Lifeline({0: connection})


def _introduced(connection: socket.socket, token: str) -> int | None:
    """The rank that a connection names; None for a stranger."""
    connection.settimeout(5.0)
    try:
        said, _, rank = connection.recv(_LINE_BYTES, socket.MSG_WAITALL).decode().strip().partition(" ")
    except (OSError, UnicodeDecodeError):
        said, rank = "", ""
    if not secrets.compare_digest(said, token):
        connection.close()
        return None
    return int(rank)

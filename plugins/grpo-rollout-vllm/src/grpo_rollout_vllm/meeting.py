"""Where the two ends of a transfer find each other: torch wants a key-value store for that, and its own one answers
whoever connects. This one listens at one address, and only for those who know the secret of the transfer.

Each end has a store in its memory, for its process group; over the connection goes what is new in either. Strangers get
nothing, and nobody waits for them.

Place in the flow: run's rank 0 ↔ **meeting** ↔ a server's workers, before **broadcast**.
"""

from __future__ import annotations

import base64
import json
import secrets
import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any

from torch.distributed import HashStore

__all__ = ["Meeting", "Visit"]

_SECRET_BYTES = 32
_HELLO_BYTES = 2 * _SECRET_BYTES
_INTRODUCE_LIMIT_S = 5.0
_MOST_STRANGERS = 64
"""Connections that have not said the secret yet; more are closed at once."""
_LOOK_S = 0.002


class Meeting:
    """The end that the others come to; a context manager. Raises `OSError` where `host` is no address of this
    machine."""

    def __init__(self, host: str) -> None:
        family = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0][0]
        self.secret = secrets.token_hex(_SECRET_BYTES)
        self.store: Any = HashStore()
        self._listener = socket.create_server((host, 0), family=family)
        self._strangers = threading.Semaphore(_MOST_STRANGERS)
        self._lock = threading.Lock()
        self._exchanges: list[_Exchange] = []
        self._closed = False
        threading.Thread(target=self._accept, name="weights: meeting", daemon=True).start()

    @property
    def address(self) -> str:
        """Where it listens."""
        return str(self._listener.getsockname()[0])

    @property
    def port(self) -> int:
        """The port there."""
        return int(self._listener.getsockname()[1])

    def close(self) -> None:
        """Leave everyone."""
        _close(self._listener)
        with self._lock:
            self._closed = True
            for exchange in self._exchanges:
                exchange.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            if self._strangers.acquire(blocking=False):
                threading.Thread(target=self._meet, args=[connection], daemon=True).start()
            else:
                connection.close()

    def _meet(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(_INTRODUCE_LIMIT_S)
            said = connection.recv(_HELLO_BYTES, socket.MSG_WAITALL)
        except OSError:
            said = b""
        finally:
            self._strangers.release()
        if not secrets.compare_digest(said, self.secret.encode()):
            connection.close()
            return
        with self._lock:
            if self._closed:
                connection.close()
            else:
                self._exchanges.append(_Exchange(connection, self.store))

    def __enter__(self) -> Meeting:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Visit:
    """The end that comes."""

    def __init__(self, host: str, port: int, secret: str, *, limit_s: float) -> None:
        self.store: Any = HashStore()
        connection = socket.create_connection((host, port), timeout=limit_s)
        connection.sendall(secret.encode())
        self.own_address = str(connection.getsockname()[0])
        """This machine's, as the other end sees it."""
        self._exchange = _Exchange(connection, self.store)

    def close(self) -> None:
        """Leave."""
        self._exchange.close()


class _Exchange:
    """Keeps the stores of both ends the same, until one of them closes. Keys are set once and never changed."""

    def __init__(self, connection: socket.socket, store: Any) -> None:
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        self._store = store
        self._known: set[str] = set()
        self._closed = False
        for work in (self._tell, self._hear):
            threading.Thread(target=work, name="weights: exchange", daemon=True).start()

    def close(self) -> None:
        self._closed = True
        _close(self._connection)

    def _tell(self) -> None:
        while not self._closed:
            for key in set(self._store.list_keys()) - self._known:
                self._known.add(key)
                value = base64.b64encode(self._store.get(key)).decode()
                try:
                    self._connection.sendall(json.dumps([key, value]).encode() + b"\n")
                except OSError:
                    return  # the other end has left
            time.sleep(_LOOK_S)

    def _hear(self) -> None:
        try:
            with self._connection.makefile("rb") as lines:
                for line in lines:
                    key, value = json.loads(line)
                    self._known.add(key)
                    self._store.set(key, base64.b64decode(value))
        except (OSError, ValueError):
            return  # the other end has left, in the middle of a line perhaps


def _close(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for it
    connection.close()

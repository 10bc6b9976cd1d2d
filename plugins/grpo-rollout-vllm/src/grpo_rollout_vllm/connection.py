"""HTTP to one server, in JSON, as the calling thread waits; `abandon` wakes all who wait.

Knows nothing of vLLM. What can go wrong is one of two things: there is no answer (`Unreachable`), or the answer is no
(`Refused`).

Place in the flow: server → **connection** → the network.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from typing import Any
from urllib.parse import urlsplit

__all__ = ["Connection", "Refused", "Unreachable"]

_SHOWN = 400


class Unreachable(Exception):
    """There is no answer; the text says why, as a clause: "connection refused"."""


class Refused(Exception):
    """The answer is an HTTP error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Connection:
    """Every call has a connection of its own."""

    def __init__(self, url: str, *, key: str | None = None) -> None:
        parts = urlsplit(url)
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port or (443 if self._secure else 80)
        self._headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        self._lock = threading.Lock()
        self._open: set[http.client.HTTPConnection] = set()

    def get(self, path: str, *, limit_s: float) -> Any:
        """The JSON at a path, or the text that is there; None for an empty answer."""
        return self._call("GET", path, None, limit_s)

    def post(self, path: str, content: Any = None, *, limit_s: float) -> Any:
        """The JSON, or text, that comes back for `content`; None for an empty answer."""
        return self._call("POST", path, json.dumps({} if content is None else content), limit_s)

    def abandon(self) -> None:
        """Break every call that is going on; each raises `Unreachable`."""
        with self._lock:
            for connection in self._open:
                if connection.sock is not None:
                    with contextlib.suppress(OSError):
                        connection.sock.shutdown(socket.SHUT_RDWR)

    def local_address(self) -> str:
        """This machine's address as the server sees it."""
        family, _, _, _, where = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(where)
            return str(probe.getsockname()[0])

    def _call(self, method: str, path: str, body: str | None, limit_s: float) -> Any:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=limit_s)
        with self._lock:
            self._open.add(connection)
        try:
            connection.request(method, path, body, self._headers)
            response = connection.getresponse()
            status, text = response.status, response.read().decode("utf-8", errors="replace")
        except TimeoutError:
            raise Unreachable(f"no answer for {limit_s:.0f} s") from None
        except ConnectionRefusedError:
            raise Unreachable("connection refused") from None
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"the connection broke ({error or type(error).__name__})") from None
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()
        if status >= 400:
            raise Refused(status, _message(text))
        try:
            return json.loads(text) if text else None
        except ValueError:
            return text


def _message(text: str) -> str:
    """What an error says, out of vLLM's or FastAPI's wrapping."""
    try:
        content = json.loads(text)
        found = content.get("error", content.get("detail", content))
        return str(found["message"] if isinstance(found, dict) and "message" in found else found)[:_SHOWN]
    except (ValueError, AttributeError):
        return text[:_SHOWN]
